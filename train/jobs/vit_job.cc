// VitJob trains a Vision Transformer (models/vit.h) to classify pictures by their labels, to guess the pixels of hidden
// patches, or to find the places of shuffled patches.
// Pixels are scaled to -1 .. 1, as published models expect, or as the ImageProcessor of the initial weights says.
// Training pictures are also moved at random, by at most "shift" pixels. In the task order, patches get no table of
// positions, because their true places are the answer. They are shuffled all the same: attention that depends on
// distances, such as rotary, then sees no true places either.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/core/tape.h"
#include "weft/formats/config_json.h"
#include "weft/formats/image_processor.h"
#include "weft/formats/images.h"
#include "weft/formats/run_folder.h"
#include "weft/models/layers.h"
#include "weft/models/lora.h"
#include "weft/models/vit.h"
#include "weft/train/jobs/bucket_job.h"
#include "weft/train/jobs/job_list.h"
#include "weft/train/jobs/patch_puzzle.h"

namespace weft {
namespace {

constexpr int64_t kValidationShare = 5;  // every fifth picture validates if no validation data is given
constexpr int64_t kSamples = 8;          // pictures in puzzles.png
constexpr char kSampleFile[] = "puzzles.png";

// A BucketJob with one bucket, because all pictures have one size.
class VitJob final : public BucketJob {
 public:
  VitJob()
      : BucketJob(/*tokenizer=*/nullptr, /*batch=*/32, {.also_train = "*classifier"},
                  {.optimizer = AdamW({.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.05, .clip = 1.0}),
                   .schedule = {.peak = 2e-3, .floor = 1e-5, .warmup = 50},
                   .trainer = {.steps = 0, .eval_every = -1, .checkpoint_every = 0},
                   .epochs = 20}) {
    set_source(&model_);
  }

  Hyperparameters Table() override {
    const Hyperparameters data = {
        ChoiceRow<VitTask>("task",
                           "what to learn: the class of a picture, the pixels of hidden patches, or the places of "
                           "shuffled patches; the last two need no labels",
                           kVitTaskNames, &task_),
        {"data",
         "pictures: a folder with a folder of PNG or JPEG files for each class; a list of such files, each with a tab "
         "and its class; or, also gzip-compressed, CSV lines of pixels and a label in the last column, or MNIST's IDX",
         &data_path_,
         {.may_change = true, .is_path = true, .required = true}},
        {"labels",
         "file of the pictures' labels, if data is IDX",
         &labels_path_,
         {.may_change = true, .is_path = true}},
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
        RDropRow("task=classify|order"),
        {"shift",
         "maximum number of pixels by which training moves a picture in each direction",
         &shift_,
         {.low = 0, .high = 1e3}},
        {"masked",
         "task masked: fraction of the patches that are hidden and must be predicted",
         &masked_,
         {.low = 0.001, .high = 1, .needs = "task=masked"}},
    };
    return WithSharedRows(InGroup("Data", data), training);
  }

  absl::Status Check(const RunDirectory* resumed) override {
    if (task_ == VitTask::kMasked) lora_.also_train = "decoder.*,*.mask_token";
    if (task_ == VitTask::kOrder) lora_.also_train = "places";
    processor_folder_ = resumed != nullptr ? resumed->path() : ParseRunPath(model_.init()).folder;
    return BucketJob::Check(resumed);
  }

  absl::Status Prepare(Parameters* /*parameters*/) override {
    WEFT_RETURN_IF_ERROR(ReadTrainingPictures());
    if (validation_path_.empty()) {
      validation_images_ = HoldOut(&images_, kValidationShare);
    } else {
      const ImageProcessor processor = processor_.value_or(ImageProcessor{.channels = images_.channels});
      WEFT_ASSIGN_OR_RETURN(validation_images_,
                            Read(validation_path_, validation_labels_path_, processor, images_.classes));
      if (validation_images_.processed != images_.processed) {
        return InvalidArgument(validation_path_, ": all pictures must be of PNG or JPEG files, or none of them");
      }
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
    VitConfig& model = *model_.mutable_config();
    if (model_.has_weights() && (model.image_height != images_.height || model.image_width != images_.width)) {
      return InvalidArgument(images_.path, " has pictures of ", images_.height, " x ", images_.width,
                             " pixels, but the model's weights are for ", model.image_height, " x ", model.image_width);
    }
    if (model_.has_weights() && model.channels != images_.channels) {
      return InvalidArgument("the model's weights are for pictures of ", model.channels, " channels, but ",
                             images_.path, " has ", images_.channels);
    }
    const bool classifies = task_ == VitTask::kClassify;
    if (!classifies && images_.channels != 1) {
      return InvalidArgument("task: masked and order need pictures of 1 channel, but ", images_.path, " has ",
                             images_.channels);
    }
    model.image_height = images_.height;
    model.image_width = images_.width;
    model.channels = images_.channels;
    const auto classes_of = [](const Images& images) -> int64_t {
      return images.labels.empty() ? 0 : *std::max_element(images.labels.begin(), images.labels.end()) + 1;
    };
    model.classes = classifies ? classes_of(images_) : 1;
    const bool held_out = validation_path_.empty();  // may have a class that the other pictures lack
    if (classifies && held_out) model.classes = std::max(model.classes, classes_of(validation_images_));
    if (classifies && images_.processed) model.classes = static_cast<int64_t>(images_.classes.size());
    for (const int32_t label : validation_images_.labels) {
      if (!classifies || label < model.classes) continue;
      return InvalidArgument(validation_images_.path, ": the label ", label, " is none of the ", model.classes,
                             " that ", images_.path, " has");
    }
    WEFT_RETURN_IF_ERROR(weft::Validate(model));
    WEFT_RETURN_IF_ERROR(MakePuzzle());
    brightest_ = images_.processed ? 255 : *std::max_element(images_.pixels.begin(), images_.pixels.end());
    if (brightest_ == 0) return InvalidArgument(images_.path, ": all pixels are 0");
    const auto lengths = [](const Images& images) {
      return std::vector<int64_t>(static_cast<size_t>(images.size()), 1);
    };
    SetLengths(lengths(images_), lengths(validation_images_), /*longest=*/1);
    return absl::OkStatus();
  }

  nlohmann::ordered_json Model() const override {
    nlohmann::ordered_json json = BucketJob::Model();
    if (json.empty()) return json;
    if (images_.processed) AddLabels(images_.classes, &json);
    SetVitTask(task_, &json);
    return json;
  }

  std::string Title(const Parameters& parameters) const override {
    return absl::StrCat("a Vision Transformer of ", CountParameters(parameters), " on ",
                        Count(static_cast<size_t>(images_.size()), "picture", "pictures"), " of ", images_.height,
                        " x ", images_.width, " pixels (",
                        task_ == VitTask::kClassify ? absl::StrCat(model_.config().classes, " classes)")
                        : task_ == VitTask::kMasked
                            ? absl::StrCat(puzzle_.hidden, " of ", puzzle_.patches(), " patches are hidden)")
                            : absl::StrCat(puzzle_.patches(), " patches in random order)"));
  }

  // Writes preprocessor_config.json, which tells how pixels become the model's input, in the keys of Hugging Face.
  absl::Status WriteFiles(RunDirectory* run) const override {
    // These settings map pixel 0 to -1 and the brightest pixel to 1.
    const std::vector<double> halves(static_cast<size_t>(images_.channels), 0.5);
    const nlohmann::ordered_json json = {
        {"do_resize", false},   {"do_rescale", true},   {"rescale_factor", 1.0 / static_cast<double>(brightest_)},
        {"do_normalize", true}, {"image_mean", halves}, {"image_std", halves}};
    const bool given = processor_ && !processor_->file.empty();
    return run->WriteKept("preprocessor_config.json", given ? processor_->file : json.dump(2) + "\n");
  }

  absl::Status Initialize(Parameters* parameters) override {
    std::vector<std::string> labels = images_.classes;
    for (int64_t i = 0; i < model_.config().classes && !images_.processed; ++i) labels.push_back(absl::StrCat(i));
    return model_.Initialize({"classifier.", "cls_classifier.", "distillation_classifier.", "decoder.", "places.",
                              "vit.embeddings.mask_token", "vit.embeddings.position_embeddings",
                              "deit.embeddings.mask_token", "deit.embeddings.position_embeddings"},
                             labels, parameters);
  }

  // For the tasks other than classify, writes puzzles.png (WritePuzzles) with pictures of the validation data.
  absl::StatusOr<std::string> Conclude(const RunDirectory& run, Parameters* /*parameters*/) override {
    const int64_t count = std::min(kSamples, validation_images_.size());
    if (task_ == VitTask::kClassify || count == 0) return "";
    std::vector<PuzzleSample> samples;
    for (int32_t i = 0; i < static_cast<int32_t>(count); ++i) {
      samples.push_back({Input(validation_images_, i, 0, 0), puzzle_.Draw(Random(0), i)});
    }
    WEFT_RETURN_IF_ERROR(
        WritePuzzles(puzzle_, model_.config(), samples, run.path(), run.File(kSampleFile), training_.trainer.threads));
    return absl::StrCat(kSampleFile, ": ", count, " validation pictures; each row has the picture, ",
                        task_ == VitTask::kMasked ? "the picture with hidden patches, and the reconstruction\n"
                                                  : "its shuffled patches, and the patches at the predicted places\n");
  }

 protected:
  // The inputs are the pictures f32 [B, height, width, channels] and the targets. classify: i32 [B]; order: i32 [B, N],
  // the place of each patch; masked: f32 [B, N], 1 for hidden ones.
  TrainingProgram Record(Shape shape, Tape* tape, VarList* inputs) override {
    const VitConfig& model = model_.config();
    const Var images =
        tape->Input("images", {kF32, {shape.rows, model.image_height, model.image_width, model.channels}});
    const Vit vit(model);
    if (task_ == VitTask::kMasked) {
      const Var mask = tape->Input("mask", {kF32, {shape.rows, model.patches()}});
      *inputs = {images, mask};
      const LoraScope lora(tape, lora_);
      const Var predicted = vit.Reconstruct(vit.Encode(images, {.mask = mask}));  // [B, N, P·P]
      return {.tape = tape, .loss = vit.ReconstructionLoss(predicted, images, mask)};
    }
    const bool order = task_ == VitTask::kOrder;
    const weft::Shape shape_of_targets = order ? weft::Shape{shape.rows, model.patches()} : weft::Shape{shape.rows};
    const Var targets = tape->Input("targets", {kI32, shape_of_targets},
                                    {.below = order ? model.patches() : model.classes, .ignored = kIgnoredTarget});
    *inputs = {images, targets};
    const LoraScope lora(tape, lora_);
    const Var logits = vit.Predict(task_, Twice(images));  // [B, classes] or [B, N, N]
    TrainingProgram program = LossOf(logits, targets);
    program.correct = CountCorrect(Once(logits), targets);
    return program;
  }

  // Training moves each picture at random. The random numbers of an evaluation do not depend on the step, so that every
  // evaluation has the same puzzles.
  absl::StatusOr<BucketJob::Rows> Fill(const Examples& examples) override {
    const bool trains = examples.split == DataSplit::kTrain;
    const Images& images = trains ? images_ : validation_images_;
    const int64_t shift = trains ? shift_ : 0;
    RandomStream random = Random(examples.number);
    random.stream = kShiftStream;
    const auto rows = static_cast<size_t>(examples.shape.rows);
    const auto patches = static_cast<size_t>(puzzle_.patches()), each = static_cast<size_t>(images.pixels_each());
    pixels_.assign(rows * each, -1);
    masks_.assign(task_ == VitTask::kMasked ? rows * patches : 0, 0);
    labels_.assign(task_ == VitTask::kOrder ? rows * patches : rows, kIgnoredTarget);
    for (size_t row = 0; row < examples.indices.size(); ++row) {
      const size_t in_batch = static_cast<size_t>(examples.begin) + row;
      const int32_t example = examples.indices[row];
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
    const auto count = static_cast<int64_t>(examples.indices.size());
    const int64_t targets = task_ == VitTask::kClassify ? 1
                            : task_ == VitTask::kMasked ? puzzle_.hidden
                                                        : puzzle_.patches();
    return Rows{.inputs = {pixels_, task_ == VitTask::kMasked ? Feed(masks_) : Feed(labels_)},
                .tokens = count * puzzle_.patches(),
                .targets = count * targets};
  }

 private:
  absl::StatusOr<Images> Read(const std::string& path, const std::string& labels, const ImageProcessor& processor,
                              const std::vector<std::string>& classes) const {
    const bool labelled = task_ == VitTask::kClassify || !labels.empty();
    return labelled ? ReadImages(path, labels, processor, classes)
                    : ReadUnlabelledImages(path, /*height=*/0, /*width=*/0, processor);
  }

  // Sets images_ and, if they are PNG or JPEG files, processor_.
  absl::Status ReadTrainingPictures() {
    ImageProcessor usual;
    if (model_.has_weights()) usual.channels = model_.config().channels;
    absl::StatusOr<ImageProcessor> processor = usual;
    if (!processor_folder_.empty() && Exists(processor_folder_ + "/preprocessor_config.json")) {
      processor = ReadImageProcessor(processor_folder_, model_.config());
    }
    WEFT_ASSIGN_OR_RETURN(images_, Read(data_path_, labels_path_, processor.value_or(usual), {}));
    if (!images_.processed) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(processor_, std::move(processor));
    return absl::OkStatus();
  }

  // Sets puzzle_. Returns InvalidArgument if the pictures have too few patches for the task.
  absl::Status MakePuzzle() {
    const VitConfig& model = model_.config();
    const int64_t patches = model.patches();
    if (task_ == VitTask::kOrder && patches < 2) {
      return InvalidArgument("task: order needs at least 2 patches, but a picture of ", model.image_height, " x ",
                             model.image_width, " pixels is 1 patch of patch-size ", model.patch_size);
    }
    puzzle_ = {.task = task_,
               .height = model.image_height,
               .width = model.image_width,
               .patch = model.patch_size,
               .hidden = std::max<int64_t>(1, std::llround(masked_ * static_cast<double>(patches)))};
    return absl::OkStatus();
  }

  // Returns a picture as the model's input, moved by `down` and `right` pixels.
  std::vector<float> Input(const Images& images, int32_t example, int64_t down, int64_t right) const {
    const int64_t height = images.height, width = images.width, channels = images.channels;
    const absl::Span<const float> picture = images[example];
    std::vector<float> input(picture.size(), -1);  // -1 is the darkest value
    for (size_t i = 0; processor_ && i < input.size(); ++i) input[i] = (*processor_)(0, i);
    for (int64_t y = std::max<int64_t>(0, -down); y < std::min(height, height - down); ++y) {
      for (int64_t x = std::max<int64_t>(0, -right); x < std::min(width, width - right); ++x) {
        for (int64_t channel = 0; channel < channels; ++channel) {
          const float value = picture[static_cast<size_t>((y * width + x) * channels + channel)];
          const auto to = static_cast<size_t>(((y + down) * width + x + right) * channels + channel);
          // Pixels are from -1 to 1, as published models expect.
          input[to] = processor_ ? (*processor_)(value, to) : 2 * (value / brightest_) - 1;
        }
      }
    }
    return input;
  }

  // Options.
  std::string data_path_, labels_path_, validation_path_, validation_labels_path_;
  SourceOf<PublishedVit> model_{{.patch_size = 4, .layers = 4, .heads = 4, .width = 64, .dropout = 0.1}};
  VitTask task_ = VitTask::kClassify;
  double masked_ = 0.5;  // fraction of the patches to hide
  int64_t shift_ = 0, pictures_ = 0;

  std::string processor_folder_;             // the resumed run or the initial weights, or ""
  std::optional<ImageProcessor> processor_;  // that of the folder, or the usual one; only for PNG and JPEG files
  Images images_, validation_images_;
  float brightest_ = 1;  // the largest pixel value of the training pictures
  PatchPuzzle puzzle_;   // of the tasks masked and order
  // The values of a micro-batch.
  std::vector<float> pixels_, masks_;
  std::vector<int32_t> labels_;
};

}  // namespace

std::unique_ptr<TrainingJob> MakeVitJob() { return std::make_unique<VitJob>(); }

}  // namespace weft
