// GptJob trains a GPT (models/gpt.h) on texts, or on token files (text/token_files.h).
#ifndef WEFT_TRAIN_JOBS_GPT_JOB_H_
#define WEFT_TRAIN_JOBS_GPT_JOB_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/random.h"
#include "weft/distributed/index_range.h"
#include "weft/models/lora.h"
#include "weft/text/token_source.h"
#include "weft/train/jobs/gpt_data.h"
#include "weft/train/jobs/gpt_program.h"
#include "weft/train/jobs/job.h"
#include "weft/train/jobs/model_source.h"
#include "weft/train/task.h"

namespace weft {

class GptJob final : public TrainingJob {
 public:
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
  const GptOptions& options() const { return options_; }  // after Check
  const TrainingOptions& training() const override { return options_.training; }
  // Returns the number of batches of an epoch, or 0 if no option asks for epochs. The random windows of an epoch have
  // together the length of the data.
  int64_t batches_per_epoch() const override;
  nlohmann::ordered_json Model() const override;
  std::string Title(const Parameters& parameters) const override;
  absl::Status Initialize(Parameters* parameters) override { return source_.Initialize({}, {}, parameters); }
  absl::Status WriteFiles(RunDirectory* run) const override;
  const LoraOptions& lora() const override { return options_.lora; }
  InitialWeights initial_weights() const override { return source_.initial_weights(); }
  // Generates a sample with the trained model and writes it to sample.txt, unless "sample-length" is 0.
  absl::StatusOr<std::string> Conclude(const RunDirectory& run, Parameters* parameters) override;

  // Returns the text that sample.txt would get now, at most 100 tokens; or "", if adapters are trained.
  absl::StatusOr<std::string> Sample(Parameters* parameters) const override;

  absl::Span<const TrainingProgram> programs() const override { return training_programs_; }
  std::string data() const override { return data_.fingerprint(); }
  absl::StatusOr<TrainingBatch> Train(int64_t step, MicroBatch micro_batch) override;
  int64_t validation_batches() const override { return options_.eval_batches * micro_batches(); }
  absl::StatusOr<TrainingBatch> Validate(int64_t step, int64_t index) override;

 private:
  absl::StatusOr<std::string> Generate(int64_t length, Parameters* parameters) const;
  RandomStream Random(int64_t step) const;
  int64_t micro_batches() const { return options_.training.trainer.micro_batches; }
  // Returns the windows `rows` of batch `index` of a step or evaluation.
  WindowOptions Windows(DataSplit split, int64_t step, int64_t index, IndexRange rows) const;
  // Returns the windows of this rank's micro-batches of step `step`.
  WindowOptions TrainingWindows(int64_t step) const;
  // Returns the windows of a validation batch, which has as few rows as a micro-batch.
  WindowOptions ValidationWindows(int64_t step, int64_t index) const;
  // Fills `windows_` with the windows of `wanted`, unless `windows_` already holds them. Windows for training get
  // noise. From token files, also begins to read the windows `next`.
  absl::Status Draw(const WindowOptions& wanted, const WindowOptions& next);
  TrainingBatch ToBatch(MicroBatch micro_batch) const;
  // If shards of token files are missing, returns an error that names the first step or evaluation of this rank that
  // needs one of them. `step`: the first step that is still to run. `evaluates`: whether an evaluation precedes this
  // step.
  absl::Status CheckShards(int64_t step, bool evaluates) const;
  absl::Status CheckShardsOnce(int64_t step, bool evaluates);

  GptOptions options_;  // `model` is set from source_ when its vocabulary is known
  ModelSource<PublishedGpt> source_{CharacterGpt()};
  bool resumed_ = false;
  GptData data_;
  std::vector<std::unique_ptr<GptProgram>> programs_;  // of each size of micro-batch
  std::vector<TrainingProgram> training_programs_;
  TokenBatch windows_;
  std::optional<WindowOptions> drawn_;  // the options of `windows_`; unset: no windows
  std::optional<absl::Status> shards_;  // the result of CheckShards
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_GPT_JOB_H_
