#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/apps/training/training_command.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/images.h"
#include "weft/models/vit.h"
#include "weft/text/buckets.h"
#include "weft/train/optimizer.h"
#include "weft/train/options.h"

namespace weft {
namespace {

constexpr int64_t kHeldOut = 5;  // one in five pictures, where none are given for validation

class VitJob final : public TrainingJob {
 public:
  Hyperparameters Table() override;
  absl::Status Check(const RunDirectory* resumed) override;
  absl::Status Prepare(Parameters* parameters) override;
  TrainerOptions trainer() const override {
    return batches_ == nullptr ? trainer_ : InSteps(trainer_, epochs_, batches_->size());
  }
  nlohmann::ordered_json Model() const override { return ToJson(model_).value_or(nlohmann::ordered_json()); }
  std::string Title(const Parameters& parameters) const override {
    return absl::StrCat("a Vision Transformer of ", parameters.ElementCount(), " parameters on ", images_.size(),
                        " pictures of ", images_.height, " x ", images_.width, " pixels (", model_.classes,
                        " classes)");
  }
  // How pixels become the model's input, as Hugging Face writes it: 0 becomes -1, the brightest 1.
  absl::Status WriteFiles(const RunDirectory& run) const override {
    const nlohmann::ordered_json json = {
        {"do_resize", false},   {"do_rescale", true},  {"rescale_factor", 1.0 / static_cast<double>(brightest_)},
        {"do_normalize", true}, {"image_mean", {0.5}}, {"image_std", {0.5}}};
    return WriteFile(run.File("preprocessor_config.json"), {json.dump(2) + "\n"});
  }

  absl::Span<const TrainingProgram> programs() const override { return {&program_, 1}; }
  std::string data() const override { return fingerprint_; }
  absl::StatusOr<TrainingBatch> Train(int64_t step) override {
    return Fill(images_, batches_->AtStep(trainer_.seed, step).examples, shift_,
                {.seed = trainer_.seed, .step = static_cast<uint32_t>(step)});
  }
  int64_t validation_batches() const override { return (held_.size() + batch_ - 1) / batch_; }
  TrainingBatch Validate(int64_t step, int64_t index) override;

 private:
  void Record();
  // A batch of these pictures, moved by up to so many pixels.
  TrainingBatch Fill(const Images& images, absl::Span<const int32_t> examples, int64_t shift, RandomStream random);

  // Options.
  std::string images_path_, labels_path_, validation_path_, validation_labels_path_;
  VitConfig model_ = {.patch_size = 4, .layers = 4, .heads = 4, .width = 64, .dropout = 0.1};
  int64_t batch_ = 32, epochs_ = 20, shift_ = 0;
  AdamWConfig optimizer_ = {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.05, .clip = 1.0};
  TrainerOptions trainer_ = {.steps = 0,
                             .learning_rate = 2e-3,
                             .minimum_learning_rate = 1e-5,
                             .warmup_steps = 50,
                             .eval_every = -1,
                             .checkpoint_every = 0};

  std::string fingerprint_;
  Images images_, held_;  // for training and for validation
  float brightest_ = 1;
  std::unique_ptr<BucketBatches> batches_;
  Tape tape_;
  Var input_, target_;  // f32 [B, height, width, 1], i32 [B]
  TrainingProgram program_;
  std::vector<float> pixels_;
  std::vector<int32_t> labels_;
};

Hyperparameters VitJob::Table() {
  Hyperparameters table = {
      {"data",
       "pictures: CSV of their pixels and a label, or MNIST's IDX; .gz, too",
       &images_path_,
       {.may_change = true, .is_path = true}},
      {"labels", "for IDX, the file of labels", &labels_path_, {.may_change = true, .is_path = true}},
      {"validation",
       "pictures for validation; without them, every fifth of --data",
       &validation_path_,
       {.may_change = true, .is_path = true}},
      {"validation-labels", "for IDX, their labels", &validation_labels_path_, {.may_change = true, .is_path = true}},
      {"patch-size", "pixels of a patch's side", &model_.patch_size, {.low = 1, .high = 1e4}},
      {"layers", "encoder blocks", &model_.layers, {.low = 1, .high = 1e4}},
      {"heads", "attention heads of a block", &model_.heads, {.low = 1, .high = 1e4}},
      {"width", "of the model, a multiple of heads", &model_.width, {.low = 1, .high = 1e6}},
      {"feed-forward",
       "width of the feed-forward layers; 0: 4 times width",
       &model_.feed_forward,
       {.low = 0, .high = 1e7}},
      {"dropout", "probability", &model_.dropout, {.low = 0, .high = 0.99}},
      {"batch", "pictures in a batch", &batch_, {.low = 1, .high = 1e6}},
      {"shift",
       "the most pixels by which a picture is moved, either way, in training",
       &shift_,
       {.low = 0, .high = 1e3}},
  };
  const auto append = [&](const Hyperparameters& rows) { table.insert(table.end(), rows.begin(), rows.end()); };
  append(TrainerHyperparameters(&trainer_, &epochs_));
  append(AdamWHyperparameters(&optimizer_));
  return table;
}

absl::Status VitJob::Check(const RunDirectory* /*resumed*/) {
  if (images_path_.empty()) return absl::InvalidArgumentError("--data=FILE is missing");
  VitConfig config = model_;  // the pictures' sizes are not known before they are read
  config.image_height = config.image_width = config.patch_size;
  config.channels = 1;
  return weft::Validate(config);
}

absl::Status VitJob::Prepare(Parameters* /*parameters*/) {
  WEFT_ASSIGN_OR_RETURN(images_, ReadImages(images_path_, labels_path_));
  if (validation_path_.empty()) {
    held_ = HoldOut(&images_, kHeldOut);
  } else {
    WEFT_ASSIGN_OR_RETURN(held_, ReadImages(validation_path_, validation_labels_path_));
  }
  fingerprint_ = Fingerprint<float>(images_.pixels, Fingerprint<int32_t>(images_.labels));
  if (images_.size() == 0) return absl::InvalidArgumentError(absl::StrCat(images_.path, ": too few pictures"));
  if (held_.size() > 0 && (held_.height != images_.height || held_.width != images_.width)) {
    return absl::InvalidArgumentError(absl::StrCat(held_.path, " has pictures of ", held_.height, " x ", held_.width,
                                                   " pixels, ", images_.path, " of ", images_.height, " x ",
                                                   images_.width));
  }
  model_.image_height = images_.height;
  model_.image_width = images_.width;
  model_.channels = 1;
  model_.classes = *std::max_element(images_.labels.begin(), images_.labels.end()) + 1;
  for (const int32_t label : held_.labels) {
    if (label < model_.classes) continue;
    return absl::InvalidArgumentError(absl::StrCat(held_.path, ": the label ", label, " is none of the ",
                                                   model_.classes, " that ", images_.path, " has"));
  }
  WEFT_RETURN_IF_ERROR(weft::Validate(model_));
  brightest_ = *std::max_element(images_.pixels.begin(), images_.pixels.end());
  if (brightest_ == 0) return absl::InvalidArgumentError(absl::StrCat(images_.path, ": all pixels are 0"));
  const std::vector<int64_t> lengths(static_cast<size_t>(images_.size()), 1);
  batches_ = std::make_unique<BucketBatches>(absl::Span<const int64_t>{1}, lengths, batch_);
  Record();
  return absl::OkStatus();
}

void VitJob::Record() {
  input_ = tape_.Input("images", {kF32, {batch_, model_.image_height, model_.image_width, 1}});
  target_ = tape_.Input("targets", {kI32, {batch_}}, {.below = model_.classes, .ignored = kIgnoredTarget});
  const Var logits = Vit(model_).Logits(input_);  // [B, classes]
  program_ = RecordUpdate(CrossEntropy(logits, target_), optimizer_, CountCorrect(logits, target_));
}

TrainingBatch VitJob::Fill(const Images& images, absl::Span<const int32_t> examples, int64_t shift,
                           RandomStream random) {
  random.stream = kShiftStream;
  const int64_t height = images.height, width = images.width;
  pixels_.assign(static_cast<size_t>(batch_ * images.pixels_each()), -1);  // the darkest
  labels_.assign(static_cast<size_t>(batch_), kIgnoredTarget);
  for (size_t row = 0; row < examples.size(); ++row) {
    const absl::Span<const float> picture = images[examples[row]];
    const auto draw = [&](uint64_t which) {
      return static_cast<int64_t>(random.Below(static_cast<uint64_t>(2 * shift + 1), 2 * row + which)) - shift;
    };
    const int64_t down = draw(0), right = draw(1);
    float* const to = &pixels_[row * static_cast<size_t>(images.pixels_each())];
    for (int64_t y = std::max<int64_t>(0, -down); y < std::min(height, height - down); ++y) {
      for (int64_t x = std::max<int64_t>(0, -right); x < std::min(width, width - right); ++x) {
        const float value = picture[static_cast<size_t>(y * width + x)] / brightest_;
        to[(y + down) * width + x + right] = 2 * value - 1;  // the range that the published models take
      }
    }
    labels_[row] = images.labels[static_cast<size_t>(examples[row])];
  }
  const auto count = static_cast<int64_t>(examples.size());
  return {.feeds = {{input_, pixels_}, {target_, labels_}}, .tokens = count * model_.patches(), .targets = count};
}

TrainingBatch VitJob::Validate(int64_t /*step*/, int64_t index) {
  std::vector<int32_t> examples;
  for (int64_t i = index * batch_; i < std::min((index + 1) * batch_, held_.size()); ++i) {
    examples.push_back(static_cast<int32_t>(i));
  }
  return Fill(held_, examples, 0, {});
}

}  // namespace

Command TrainVitCommand(CLI::App* train) {
  return TrainingCommand(train, "vit", "Trains a Vision Transformer on pictures with labels.",
                         [] { return std::make_unique<VitJob>(); });
}

}  // namespace weft
