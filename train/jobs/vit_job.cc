// Pixels are scaled to -1 .. 1, as published models expect. Training pictures are also moved at random, by at most
// "shift" pixels. In the task order, patches get no table of positions, because their true places are the answer. They
// are shuffled all the same: attention that depends on distances, such as rotary, then sees no true places either.
#include "weft/train/jobs/vit_job.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/distributed/index_range.h"
#include "weft/formats/config_json.h"
#include "weft/formats/model_options.h"
#include "weft/models/layers.h"
#include "weft/train/jobs/lora_options.h"

namespace weft {
namespace {

constexpr int64_t kValidationShare = 5;  // every fifth picture validates if no validation data is given
constexpr int64_t kSamples = 8;          // pictures in puzzles.png
constexpr char kClassifier[] = "classifier", kSampleFile[] = "puzzles.png";

}  // namespace

VitJob::VitJob()
    : training_{.optimizer = AdamW({.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.05, .clip = 1.0}),
                .schedule = {.peak = 2e-3, .floor = 1e-5, .warmup = 50},
                .trainer = {.steps = 0, .eval_every = -1, .checkpoint_every = 0},
                .epochs = 20} {}

nlohmann::ordered_json VitJob::Model() const {
  nlohmann::ordered_json json = WriteModelConfig(model_).value_or(nlohmann::ordered_json());
  if (!json.empty()) SetVitTask(task_, &json);
  return json;
}

std::string VitJob::Title(const Parameters& parameters) const {
  return absl::StrCat(
      "a Vision Transformer of ", parameters.ElementCount(), " parameters", CountTrained(lora_, parameters), " on ",
      images_.size(), " pictures of ", images_.height, " x ", images_.width, " pixels (",
      task_ == VitTask::kClassify ? absl::StrCat(model_.classes, " classes)")
      : task_ == VitTask::kMasked ? absl::StrCat(puzzle_.hidden, " of ", puzzle_.patches(), " patches are hidden)")
                                  : absl::StrCat(puzzle_.patches(), " patches in random order)"));
}

absl::Status VitJob::WriteFiles(RunDirectory* run) const {
  // These settings map pixel 0 to -1 and the brightest pixel to 1.
  const nlohmann::ordered_json json = {
      {"do_resize", false},   {"do_rescale", true},  {"rescale_factor", 1.0 / static_cast<double>(brightest_)},
      {"do_normalize", true}, {"image_mean", {0.5}}, {"image_std", {0.5}}};
  return run->WriteKept("preprocessor_config.json", json.dump(2) + "\n");
}

Hyperparameters VitJob::Table() {
  const Hyperparameters data = {
      ChoiceRow<VitTask>("task",
                         "what to learn: the class of a picture, the pixels of hidden patches, or the places of "
                         "shuffled patches; the last two need no labels",
                         kVitTaskNames, &task_),
      {"data",
       "pictures: CSV lines of pixels and, in the last column, a label; or MNIST's IDX; may be gzip-compressed",
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
       {.may_change = true, .is_path = true, .needs = "validation"}},
      {"pictures", "number of pictures to train on, the first of the data; 0: all", &pictures_, {.low = 0}},
  };
  const Hyperparameters training = {
      {"batch", "number of pictures in a step", &batch_, {.low = 1, .high = 1e6}},
      {"shift",
       "maximum number of pixels by which training moves a picture in each direction",
       &shift_,
       {.low = 0, .high = 1e3}},
      {"masked",
       "task masked: fraction of the patches that are hidden and must be predicted",
       &masked_,
       {.low = 0.001, .high = 1, .needs = "task=masked"}},
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
  if (task_ != VitTask::kClassify && lora_.also_train == kClassifier) {  // the default
    lora_.also_train = task_ == VitTask::kMasked ? "decoder.*,*.mask_token" : "places";
  }
  WEFT_RETURN_IF_ERROR(CheckMicroBatches(batch_, micro_batches()));
  WEFT_RETURN_IF_ERROR(model_source_.Check());
  model_ = model_source_.config();
  return absl::OkStatus();
}

absl::StatusOr<Images> VitJob::Read(const std::string& path, const std::string& labels) const {
  const bool labelled = task_ == VitTask::kClassify || !labels.empty();
  return labelled ? ReadImages(path, labels) : ReadUnlabelledImages(path, /*height=*/0, /*width=*/0);
}

absl::Status VitJob::MakePuzzle() {
  const int64_t patches = model_.patches();
  if (task_ == VitTask::kOrder && patches < 2) {
    return InvalidArgument("task: order needs at least 2 patches, but a picture of ", model_.image_height, " x ",
                           model_.image_width, " pixels is 1 patch of patch-size ", model_.patch_size);
  }
  puzzle_ = {.task = task_,
             .height = model_.image_height,
             .width = model_.image_width,
             .patch = model_.patch_size,
             .hidden = std::max<int64_t>(1, std::llround(masked_ * static_cast<double>(patches)))};
  return absl::OkStatus();
}

absl::Status VitJob::Prepare(Parameters* /*parameters*/) {
  WEFT_ASSIGN_OR_RETURN(images_, Read(data_path_, labels_path_));
  if (validation_path_.empty()) {
    validation_images_ = HoldOut(&images_, kValidationShare);
  } else {
    WEFT_ASSIGN_OR_RETURN(validation_images_, Read(validation_path_, validation_labels_path_));
  }
  if (pictures_ > 0) KeepFirst(pictures_, &images_);
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
  const bool classifies = task_ == VitTask::kClassify;
  model_.classes = classifies ? *std::max_element(images_.labels.begin(), images_.labels.end()) + 1 : 1;
  for (const int32_t label : validation_images_.labels) {
    if (!classifies || label < model_.classes) continue;
    return InvalidArgument(validation_images_.path, ": the label ", label, " is none of the ", model_.classes, " that ",
                           images_.path, " has");
  }
  WEFT_RETURN_IF_ERROR(weft::Validate(model_));
  WEFT_RETURN_IF_ERROR(MakePuzzle());
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
  return model_source_.Initialize(
      {"classifier.", "decoder.", "places.", "vit.embeddings.mask_token", "vit.embeddings.position_embeddings"}, labels,
      parameters);
}

void VitJob::Record() {
  for (const int64_t rows : MicroBatchSizes(batch_, micro_batches())) {
    Recorded& recorded = recorded_.emplace_back();
    Tape& tape = recorded.tape;
    recorded.input = tape.Input("images", {kF32, {rows, model_.image_height, model_.image_width, 1}});
    const Vit vit(model_);
    if (task_ == VitTask::kMasked) {
      recorded.target = tape.Input("mask", {kF32, {rows, model_.patches()}});
      const LoraScope lora(&tape, lora_);
      const Var predicted = vit.Reconstruct(vit.Encode(recorded.input, {.mask = recorded.target}));  // [B, N, P·P]
      programs_.push_back({.tape = &tape, .loss = vit.ReconstructionLoss(predicted, recorded.input, recorded.target)});
      continue;
    }
    const bool order = task_ == VitTask::kOrder;
    const Shape shape = order ? Shape{rows, model_.patches()} : Shape{rows};
    recorded.target = tape.Input("targets", {kI32, shape},
                                 {.below = order ? model_.patches() : model_.classes, .ignored = kIgnoredTarget});
    const LoraScope lora(&tape, lora_);
    const Var logits = vit.Predict(task_, recorded.input);  // [B, classes] or [B, N, N]
    programs_.push_back({.tape = &tape,
                         .loss = CrossEntropy(logits, recorded.target),
                         .correct = CountCorrect(logits, recorded.target)});
  }
}

std::vector<float> VitJob::Input(const Images& images, int32_t example, int64_t down, int64_t right) const {
  const int64_t height = images.height, width = images.width;
  const absl::Span<const float> picture = images[example];
  std::vector<float> input(picture.size(), -1);  // -1 is the darkest value
  for (int64_t y = std::max<int64_t>(0, -down); y < std::min(height, height - down); ++y) {
    for (int64_t x = std::max<int64_t>(0, -right); x < std::min(width, width - right); ++x) {
      const float value = picture[static_cast<size_t>(y * width + x)] / brightest_;
      // Pixels are from -1 to 1, as published models expect.
      input[static_cast<size_t>((y + down) * width + x + right)] = 2 * value - 1;
    }
  }
  return input;
}

TrainingBatch VitJob::Fill(const Images& images, absl::Span<const int32_t> examples, MicroBatch micro_batch,
                           int64_t shift, RandomStream random) {
  random.stream = kShiftStream;
  const auto rows = static_cast<size_t>(RowsOf(micro_batch, batch_).size());
  const auto patches = static_cast<size_t>(model_.patches()), each = static_cast<size_t>(images.pixels_each());
  const IndexRange range = RowsOf(micro_batch, static_cast<int64_t>(examples.size()));
  pixels_.assign(rows * each, -1);
  masks_.assign(task_ == VitTask::kMasked ? rows * patches : 0, 0);
  labels_.assign(task_ == VitTask::kOrder ? rows * patches : rows, kIgnoredTarget);
  for (size_t row = 0; row < static_cast<size_t>(range.size()); ++row) {
    const size_t in_batch = static_cast<size_t>(range.begin) + row;
    const int32_t example = examples[in_batch];
    const auto draw = [&](uint64_t axis) {
      return static_cast<int64_t>(random.Below(static_cast<uint64_t>(2 * shift + 1), 2 * in_batch + axis)) - shift;
    };
    const int64_t down = draw(0), right = draw(1);
    std::vector<float> input = Input(images, example, down, right);
    if (task_ == VitTask::kClassify) {
      labels_[row] = images.labels[static_cast<size_t>(example)];
    } else {
      const std::vector<int32_t> drawn = puzzle_.Draw(random, static_cast<int64_t>(in_batch));
      if (task_ == VitTask::kOrder) {
        puzzle_.Shuffle(drawn, absl::MakeSpan(input));
        std::copy(drawn.begin(), drawn.end(), &labels_[row * patches]);
      } else {
        for (const int32_t hidden : drawn) masks_[row * patches + static_cast<size_t>(hidden)] = 1;
      }
    }
    std::copy(input.begin(), input.end(), &pixels_[row * each]);
  }
  const size_t size = SizeIndex(micro_batch, batch_);
  const int64_t targets = task_ == VitTask::kClassify ? 1
                          : task_ == VitTask::kMasked ? puzzle_.hidden
                                                      : model_.patches();
  TrainingBatch batch = {.program = size,
                         .feeds = {{recorded_[size].input, pixels_}},
                         .tokens = range.size() * model_.patches(),
                         .targets = range.size() * targets};
  if (task_ == VitTask::kMasked) {
    batch.feeds.push_back({recorded_[size].target, masks_});
  } else {
    batch.feeds.push_back({recorded_[size].target, labels_});
  }
  return batch;
}

absl::StatusOr<TrainingBatch> VitJob::Train(int64_t step, MicroBatch micro_batch) {
  return Fill(images_, batches_->AtStep(training_.seed, step).examples, micro_batch, shift_,
              {.seed = training_.seed, .step = static_cast<uint32_t>(step)});
}

// The random numbers do not depend on the step, so that every evaluation has the same puzzles.
RandomStream VitJob::ValidationRandom(int64_t batch) const {
  return {.seed = training_.seed, .step = static_cast<uint32_t>(batch)};
}

absl::StatusOr<TrainingBatch> VitJob::Validate(int64_t /*step*/, int64_t index) {
  const int64_t count = micro_batches(), batch = index / count;
  std::vector<int32_t> examples;
  for (int64_t i = batch * batch_; i < std::min((batch + 1) * batch_, validation_images_.size()); ++i) {
    examples.push_back(static_cast<int32_t>(i));
  }
  return Fill(validation_images_, examples, {index % count, count}, 0, ValidationRandom(batch));
}

absl::StatusOr<std::string> VitJob::Conclude(const RunDirectory& run, Parameters* /*parameters*/) {
  const int64_t count = std::min(kSamples, validation_images_.size());
  if (task_ == VitTask::kClassify || count == 0) return "";
  std::vector<PuzzleSample> samples;
  for (int32_t i = 0; i < static_cast<int32_t>(count); ++i) {
    samples.push_back({Input(validation_images_, i, 0, 0), puzzle_.Draw(ValidationRandom(0), i)});
  }
  WEFT_RETURN_IF_ERROR(
      WritePuzzles(puzzle_, model_, samples, run.path(), run.File(kSampleFile), training_.trainer.threads));
  return absl::StrCat(kSampleFile, ": ", count, " validation pictures; each row has the picture, ",
                      task_ == VitTask::kMasked ? "the picture with hidden patches, and the reconstruction\n"
                                                : "its shuffled patches, and the patches at the predicted places\n");
}

}  // namespace weft
