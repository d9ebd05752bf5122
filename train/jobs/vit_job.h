// VitJob trains a Vision Transformer (models/vit.h) to classify pictures by their labels, to guess the pixels of hidden
// patches, or to find the places of shuffled patches.
#ifndef WEFT_TRAIN_JOBS_VIT_JOB_H_
#define WEFT_TRAIN_JOBS_VIT_JOB_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "weft/core/tape.h"
#include "weft/formats/images.h"
#include "weft/models/vit.h"
#include "weft/train/jobs/bucket_job.h"
#include "weft/train/jobs/model_source.h"
#include "weft/train/jobs/patch_puzzle.h"

namespace weft {

// A BucketJob with one bucket, because all pictures have one size.
class VitJob final : public BucketJob {
 public:
  VitJob();

  Hyperparameters Table() override;
  absl::Status Check(const RunDirectory* resumed) override;
  absl::Status Prepare(Parameters* parameters) override;
  nlohmann::ordered_json Model() const override;
  std::string Title(const Parameters& parameters) const override;
  // Writes preprocessor_config.json, which tells how pixels become the model's input, in the keys of Hugging Face.
  absl::Status WriteFiles(RunDirectory* run) const override;
  absl::Status Initialize(Parameters* parameters) override;
  // For the tasks other than classify, writes puzzles.png (WritePuzzles) with pictures of the validation data.
  absl::StatusOr<std::string> Conclude(const RunDirectory& run, Parameters* parameters) override;

 protected:
  // The inputs are the pictures f32 [B, height, width, 1] and the targets. classify: i32 [B]; order: i32 [B, N], the
  // place of each patch; masked: f32 [B, N], 1 for hidden ones.
  TrainingProgram Record(Shape shape, Tape* tape, VarList* inputs) override;
  absl::StatusOr<Rows> Fill(const Examples& examples) override;

 private:
  absl::StatusOr<Images> Read(const std::string& path, const std::string& labels) const;
  // Sets puzzle_. Returns InvalidArgument if the pictures have too few patches for the task.
  absl::Status MakePuzzle();
  // Returns a picture as the model's input, moved by `down` and `right` pixels.
  std::vector<float> Input(const Images& images, int32_t example, int64_t down, int64_t right) const;

  // Options.
  std::string data_path_, labels_path_, validation_path_, validation_labels_path_;
  SourceOf<PublishedVit> model_{{.patch_size = 4, .layers = 4, .heads = 4, .width = 64, .dropout = 0.1}};
  VitTask task_ = VitTask::kClassify;
  double masked_ = 0.5;  // fraction of the patches to hide
  int64_t shift_ = 0, pictures_ = 0;

  Images images_, validation_images_;
  float brightest_ = 1;  // the largest pixel value of the training pictures
  PatchPuzzle puzzle_;   // of the tasks masked and order
  // The values of a micro-batch.
  std::vector<float> pixels_, masks_;
  std::vector<int32_t> labels_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_VIT_JOB_H_
