// Pixels are scaled to -1 .. 1, as published models expect. Training pictures are also moved at random, by at most
// "shift" pixels.
#include "weft/train/jobs/vit_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/distributed/index_range.h"
#include "weft/formats/model_options.h"
#include "weft/models/layers.h"
#include "weft/train/jobs/lora_options.h"

namespace weft {
namespace {

constexpr int64_t kValidationShare = 5;  // every fifth picture validates if no validation data is given

}  // namespace

VitJob::VitJob()
    : training_{.optimizer = AdamW({.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.05, .clip = 1.0}),
                .schedule = {.peak = 2e-3, .floor = 1e-5, .warmup = 50},
                .trainer = {.steps = 0, .eval_every = -1, .checkpoint_every = 0},
                .epochs = 20} {}

nlohmann::ordered_json VitJob::Model() const { return WriteModelConfig(model_).value_or(nlohmann::ordered_json()); }

std::string VitJob::Title(const Parameters& parameters) const {
  return absl::StrCat("a Vision Transformer of ", parameters.ElementCount(), " parameters",
                      CountTrained(lora_, parameters), " on ", images_.size(), " pictures of ", images_.height, " x ",
                      images_.width, " pixels (", model_.classes, " classes)");
}

absl::Status VitJob::WriteFiles(const RunDirectory& run) const {
  // These settings map pixel 0 to -1 and the brightest pixel to 1.
  const nlohmann::ordered_json json = {
      {"do_resize", false},   {"do_rescale", true},  {"rescale_factor", 1.0 / static_cast<double>(brightest_)},
      {"do_normalize", true}, {"image_mean", {0.5}}, {"image_std", {0.5}}};
  return WriteFile(run.File("preprocessor_config.json"), {json.dump(2) + "\n"});
}

Hyperparameters VitJob::Table() {
  const Hyperparameters data = {
      {"data",
       "pictures: CSV lines of a label and pixels, or MNIST's IDX; may be gzip-compressed",
       &data_path_,
       {.may_change = true, .is_path = true, .required = true}},
      {"labels", "file of the pictures' labels, if data is IDX", &labels_path_, {.may_change = true, .is_path = true}},
      {"validation",
       "pictures for validation; without them, every fifth picture of the data",
       &validation_path_,
       {.may_change = true, .is_path = true}},
      {"validation-labels",
       "file of the validation pictures' labels, if validation is IDX",
       &validation_labels_path_,
       {.may_change = true, .is_path = true}},
  };
  const Hyperparameters training = {
      {"batch", "number of pictures in a step", &batch_, {.low = 1, .high = 1e6}},
      {"shift",
       "maximum number of pixels by which training moves a picture in each direction",
       &shift_,
       {.low = 0, .high = 1e3}},
  };
  Hyperparameters table = InGroup("Data", data);
  Append(model_source_.Table(), &table);
  Append(InGroup("Training", training), &table);
  Append(InGroup("Low-rank adapters", LoraHyperparameters(&lora_)), &table);
  Append(TrainingHyperparameters(&training_), &table);
  return table;
}

absl::Status VitJob::Check(const RunDirectory* /*resumed*/) {
  if (data_path_.empty()) return MissingFile("data");
  WEFT_RETURN_IF_ERROR(weft::Validate(lora_));
  WEFT_RETURN_IF_ERROR(CheckMicroBatches(batch_, micro_batches()));
  WEFT_RETURN_IF_ERROR(model_source_.Check());
  model_ = model_source_.config();
  return absl::OkStatus();
}

absl::Status VitJob::Prepare(Parameters* /*parameters*/) {
  WEFT_ASSIGN_OR_RETURN(images_, ReadImages(data_path_, labels_path_));
  if (validation_path_.empty()) {
    validation_images_ = HoldOut(&images_, kValidationShare);
  } else {
    WEFT_ASSIGN_OR_RETURN(validation_images_, ReadImages(validation_path_, validation_labels_path_));
  }
  fingerprint_ = Fingerprint<float>(images_.pixels, Fingerprint<int32_t>(images_.labels));
  if (images_.size() == 0) return InvalidArgument(images_.path, ": too few pictures");
  if (validation_images_.size() > 0 &&
      (validation_images_.height != images_.height || validation_images_.width != images_.width)) {
    return InvalidArgument(validation_images_.path, " has pictures of ", validation_images_.height, " x ",
                           validation_images_.width, " pixels, ", images_.path, " of ", images_.height, " x ",
                           images_.width);
  }
  const VitConfig& base = model_source_.config();
  if (model_source_.has_weights() && (base.image_height != images_.height || base.image_width != images_.width)) {
    return InvalidArgument(images_.path, " has pictures of ", images_.height, " x ", images_.width,
                           " pixels, but the model's weights are for ", base.image_height, " x ", base.image_width);
  }
  if (model_source_.has_weights() && base.channels != 1) {
    return InvalidArgument("the model's weights are for pictures of ", base.channels, " channels, but ", images_.path,
                           " has one");
  }
  model_.image_height = images_.height;
  model_.image_width = images_.width;
  model_.channels = 1;
  model_.classes = *std::max_element(images_.labels.begin(), images_.labels.end()) + 1;
  for (const int32_t label : validation_images_.labels) {
    if (label < model_.classes) continue;
    return InvalidArgument(validation_images_.path, ": the label ", label, " is none of the ", model_.classes, " that ",
                           images_.path, " has");
  }
  WEFT_RETURN_IF_ERROR(weft::Validate(model_));
  brightest_ = *std::max_element(images_.pixels.begin(), images_.pixels.end());
  if (brightest_ == 0) return InvalidArgument(images_.path, ": all pixels are 0");
  const std::vector<int64_t> lengths(static_cast<size_t>(images_.size()), 1);
  batches_ = std::make_unique<BucketBatches>(absl::Span<const int64_t>{1}, lengths, batch_);
  Record();
  return absl::OkStatus();
}

absl::Status VitJob::Initialize(Parameters* parameters) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < model_.classes; ++i) labels.push_back(absl::StrCat(i));
  return model_source_.Initialize({"classifier."}, labels, parameters);
}

void VitJob::Record() {
  for (const int64_t rows : MicroBatchSizes(batch_, micro_batches())) {
    Recorded& recorded = recorded_.emplace_back();
    Tape& tape = recorded.tape;
    recorded.input = tape.Input("images", {kF32, {rows, model_.image_height, model_.image_width, 1}});
    recorded.target = tape.Input("targets", {kI32, {rows}}, {.below = model_.classes, .ignored = kIgnoredTarget});
    const LoraScope lora(&tape, lora_);
    const Var logits = Vit(model_).Logits(recorded.input);  // [B, classes]
    programs_.push_back({.tape = &tape,
                         .loss = CrossEntropy(logits, recorded.target),
                         .correct = CountCorrect(logits, recorded.target)});
  }
}

TrainingBatch VitJob::Fill(const Images& images, absl::Span<const int32_t> examples, MicroBatch micro_batch,
                           int64_t shift, RandomStream random) {
  random.stream = kShiftStream;
  const int64_t height = images.height, width = images.width;
  const auto rows = static_cast<size_t>(RowsOf(micro_batch, batch_).size());
  const IndexRange range = RowsOf(micro_batch, static_cast<int64_t>(examples.size()));
  pixels_.assign(rows * static_cast<size_t>(images.pixels_each()), -1);  // -1 is the darkest value
  labels_.assign(rows, kIgnoredTarget);
  for (size_t row = 0; row < static_cast<size_t>(range.size()); ++row) {
    const size_t in_batch = static_cast<size_t>(range.begin) + row;
    const int32_t example = examples[in_batch];
    const absl::Span<const float> picture = images[example];
    const auto draw = [&](uint64_t axis) {
      return static_cast<int64_t>(random.Below(static_cast<uint64_t>(2 * shift + 1), 2 * in_batch + axis)) - shift;
    };
    const int64_t down = draw(0), right = draw(1);
    float* const to = &pixels_[row * static_cast<size_t>(images.pixels_each())];
    for (int64_t y = std::max<int64_t>(0, -down); y < std::min(height, height - down); ++y) {
      for (int64_t x = std::max<int64_t>(0, -right); x < std::min(width, width - right); ++x) {
        const float value = picture[static_cast<size_t>(y * width + x)] / brightest_;
        to[(y + down) * width + x + right] = 2 * value - 1;  // from -1 to 1, as published models expect
      }
    }
    labels_[row] = images.labels[static_cast<size_t>(example)];
  }
  const size_t size = SizeIndex(micro_batch, batch_);
  return {.program = size,
          .feeds = {{recorded_[size].input, pixels_}, {recorded_[size].target, labels_}},
          .tokens = range.size() * model_.patches(),
          .targets = range.size()};
}

absl::StatusOr<TrainingBatch> VitJob::Train(int64_t step, MicroBatch micro_batch) {
  return Fill(images_, batches_->AtStep(training_.seed, step).examples, micro_batch, shift_,
              {.seed = training_.seed, .step = static_cast<uint32_t>(step)});
}

absl::StatusOr<TrainingBatch> VitJob::Validate(int64_t /*step*/, int64_t index) {
  const int64_t count = micro_batches(), batch = index / count;
  std::vector<int32_t> examples;
  for (int64_t i = batch * batch_; i < std::min((batch + 1) * batch_, validation_images_.size()); ++i) {
    examples.push_back(static_cast<int32_t>(i));
  }
  return Fill(validation_images_, examples, {index % count, count}, 0, {});
}

}  // namespace weft
