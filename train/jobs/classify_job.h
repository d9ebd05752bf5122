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
#include "weft/inference/tagging_metrics.h"
#include "weft/models/bert.h"
#include "weft/models/lora.h"
#include "weft/text/padded_rows.h"
#include "weft/train/jobs/bucket_job.h"
#include "weft/train/jobs/classify_data.h"
#include "weft/train/jobs/model_source.h"
#include "weft/train/jobs/training_tokenizer.h"

namespace weft {

class ClassifyJob final : public BucketJob {
 public:
  ClassifyJob();

  Hyperparameters Table() override;
  Hyperparameters ModelTable() override { return source_.Table(); }
  absl::Status Begin(const nlohmann::ordered_json& run, const std::string& init) override {
    return source_.Begin(run, init);
  }
  absl::Status SetModel(const nlohmann::ordered_json& model, bool is_run) override {
    return source_.SetModel(model, is_run);
  }
  absl::Status Check(const RunDirectory* resumed) override;
  absl::Status Prepare(Parameters* parameters) override;
  nlohmann::ordered_json Model() const override;
  std::string Title(const Parameters& parameters) const override;
  absl::Status Initialize(Parameters* parameters) override {
    return source_.Initialize({"classifier.", "pooler."}, data_.labels(), parameters);
  }
  absl::Status WriteFiles(RunDirectory* run) const override { return tokenizer_.Write(run); }
  const LoraOptions& lora() const override { return lora_; }
  // Writes no adapter for the pooling "mean", which the files of adapters can't express.
  absl::Status SaveMore(const Parameters& parameters, const std::string& folder) const override {
    return pooling_ == "mean" ? absl::OkStatus() : TrainingJob::SaveMore(parameters, folder);
  }
  InitialWeights initial_weights() const override { return source_.initial_weights(); }
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
  Rows Fill(DataSplit split, absl::Span<const int32_t> examples, Shape shape) override;

 private:
  // Options.
  ClassifyData data_;
  ModelSource<PublishedBert> source_{
      {.context = 256, .layers = 2, .heads = 4, .width = 128, .feed_forward = 256, .dropout = 0.1}};
  TrainingTokenizer tokenizer_ = BertTokenizer(8000);
  std::string pooling_ = "first";
  LoraOptions lora_ = {.targets = "*.query,*.value", .also_train = "classifier,pooler.dense"};

  BertConfig config_;
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
