// ClassifyJob trains a classifier of texts, of pairs of texts or of words, or a regression, on a BERT-style encoder
// (models/bert.h), from initial or published weights.
#ifndef WEFT_TRAIN_JOBS_CLASSIFY_JOB_H_
#define WEFT_TRAIN_JOBS_CLASSIFY_JOB_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/core/tensor.h"
#include "weft/inference/measure/metrics.h"
#include "weft/text/data/buckets.h"
#include "weft/train/jobs/bucket_job.h"
#include "weft/train/jobs/classify_data.h"
#include "weft/train/jobs/model_source.h"
#include "weft/train/jobs/training_tokenizer.h"

namespace weft {

class ClassifyJob final : public BucketJob {
 public:
  ClassifyJob();

  Hyperparameters Table() override;
  absl::Status Check(const RunDirectory* resumed) override;
  absl::Status Prepare(Parameters* parameters) override;
  nlohmann::ordered_json Model() const override;
  std::string Title(const Parameters& parameters) const override;
  absl::Status Initialize(Parameters* parameters) override {
    return model_.Initialize({"classifier.", "pooler."}, data_.labels(), parameters);
  }
  // Writes no adapter for the pooling "mean", which the files of adapters can't express.
  absl::Status SaveMore(const Parameters& parameters, const std::string& folder) const override {
    return pooling_ == "mean" ? absl::OkStatus() : TrainingJob::SaveMore(parameters, folder);
  }
  void Predicted(const Tensor& values) override;
  // Returns precision, recall and F1 of tagged entities, or the correlations of a regression.
  NamedFigures TakeFigures(bool averaged) override;
  std::vector<std::string> figure_names() const override;
  // Returns the figures of each type of entity in the last evaluation, if the task is tokens.
  absl::StatusOr<std::string> Conclude(const RunDirectory& /*run*/, Parameters* /*parameters*/) override {
    return report_;
  }

 protected:
  TrainingProgram Record(Shape shape, Tape* tape, VarList* inputs) override;
  absl::StatusOr<Rows> Fill(const Examples& micro_batch) override;

 private:
  // Options.
  ClassifyData data_;
  SourceOf<PublishedBert> model_{
      {.context = 256, .layers = 2, .heads = 4, .width = 128, .feed_forward = 256, .dropout = 0.1}};
  TrainingTokenizer tokenizer_ = BertTokenizer(8000);
  std::string pooling_ = "first";

  // The micro-batch that Fill filled last.
  std::vector<int32_t> filled_;  // its examples
  PaddedRows rows_, segments_;
  std::vector<int32_t> targets_;
  std::vector<float> numbers_, weights_;
  // What Predicted received since the last figures.
  TaggingScore tags_;
  std::vector<double> right_, predicted_;
  std::string report_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_CLASSIFY_JOB_H_
