// VitJob trains a Vision Transformer (models/vit.h) to classify pictures by their labels, to guess the pixels of hidden
// patches, or to find the places of shuffled patches.
#ifndef WEFT_TRAIN_JOBS_VIT_JOB_H_
#define WEFT_TRAIN_JOBS_VIT_JOB_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "weft/core/random.h"
#include "weft/core/tape.h"
#include "weft/formats/images.h"
#include "weft/models/lora.h"
#include "weft/models/vit.h"
#include "weft/text/buckets.h"
#include "weft/train/jobs/job.h"
#include "weft/train/jobs/model_source.h"
#include "weft/train/jobs/patch_puzzle.h"

namespace weft {

class VitJob final : public TrainingJob {
 public:
  VitJob();

  Hyperparameters Table() override;
  Hyperparameters ModelTable() override { return model_source_.Table(); }
  absl::Status Begin(const nlohmann::ordered_json& run, const std::string& init) override {
    return model_source_.Begin(run, init);
  }
  absl::Status SetModel(const nlohmann::ordered_json& model, bool is_run) override {
    return model_source_.SetModel(model, is_run);
  }
  absl::Status Check(const RunDirectory* resumed) override;
  absl::Status Prepare(Parameters* parameters) override;
  const TrainingOptions& training() const override { return training_; }
  int64_t batches_per_epoch() const override { return batches_ == nullptr ? 0 : batches_->size(); }
  nlohmann::ordered_json Model() const override;
  std::string Title(const Parameters& parameters) const override;
  // Writes preprocessor_config.json, which tells how pixels become the model's input, in the keys of Hugging Face.
  absl::Status WriteFiles(RunDirectory* run) const override;
  const LoraOptions& lora() const override { return lora_; }
  InitialWeights initial_weights() const override { return model_source_.initial_weights(); }
  absl::Status Initialize(Parameters* parameters) override;
  // For the tasks other than classify, writes puzzles.png (WritePuzzles) with pictures of the validation data.
  absl::StatusOr<std::string> Conclude(const RunDirectory& run, Parameters* parameters) override;

  absl::Span<const TrainingProgram> programs() const override { return programs_; }
  std::string data() const override { return fingerprint_; }
  absl::StatusOr<TrainingBatch> Train(int64_t step, MicroBatch micro_batch) override;
  int64_t validation_batches() const override {
    return (validation_images_.size() + batch_ - 1) / batch_ * micro_batches();
  }
  absl::StatusOr<TrainingBatch> Validate(int64_t step, int64_t index) override;

 private:
  // The program for a size of micro-batch.
  struct Recorded {
    Tape tape;
    Var input;   // f32 [B, height, width, 1]
    Var target;  // classify: i32 [B]; order: i32 [B, N], the place of each patch; masked: f32 [B, N], 1 for hidden ones
  };

  int64_t micro_batches() const { return training_.trainer.micro_batches; }
  absl::StatusOr<Images> Read(const std::string& path, const std::string& labels) const;
  // Sets puzzle_. Returns InvalidArgument if the pictures have too few patches for the task.
  absl::Status MakePuzzle();
  void Record();
  RandomStream ValidationRandom(int64_t batch) const;
  // Returns a picture as the model's input, moved by `down` and `right` pixels.
  std::vector<float> Input(const Images& images, int32_t example, int64_t down, int64_t right) const;
  // Returns a micro-batch of the batch of pictures `examples`, each moved at random by at most `shift` pixels along
  // each axis.
  TrainingBatch Fill(const Images& images, absl::Span<const int32_t> examples, MicroBatch micro_batch, int64_t shift,
                     RandomStream random);

  // Options.
  std::string data_path_, labels_path_, validation_path_, validation_labels_path_;
  ModelSource<PublishedVit> model_source_{{.patch_size = 4, .layers = 4, .heads = 4, .width = 64, .dropout = 0.1}};
  VitTask task_ = VitTask::kClassify;
  double masked_ = 0.5;  // fraction of the patches to hide
  int64_t batch_ = 32, shift_ = 0, pictures_ = 0;
  LoraOptions lora_ = {.targets = "*.query,*.value", .also_train = "classifier"};
  TrainingOptions training_;

  VitConfig model_;  // set by Check and, when the size of the pictures is known, by Prepare
  std::string fingerprint_;
  Images images_, validation_images_;
  float brightest_ = 1;                     // the largest pixel value of the training pictures
  PatchPuzzle puzzle_;                      // of the tasks masked and order
  std::unique_ptr<BucketBatches> batches_;  // one bucket, because all pictures have one size
  std::deque<Recorded> recorded_;           // for each size of micro-batch
  std::vector<TrainingProgram> programs_;
  // The values of a micro-batch.
  std::vector<float> pixels_, masks_;
  std::vector<int32_t> labels_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_VIT_JOB_H_
