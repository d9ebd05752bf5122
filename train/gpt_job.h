// GptJob trains a GPT (models/gpt.h) on the characters of a text.
#ifndef WEFT_TRAIN_GPT_JOB_H_
#define WEFT_TRAIN_GPT_JOB_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "weft/core/random.h"
#include "weft/text/character_tokenizer.h"
#include "weft/text/corpus.h"
#include "weft/train/gpt_program.h"
#include "weft/train/job.h"

namespace weft {

class GptJob final : public TrainingJob {
 public:
  Hyperparameters Table() override { return AllHyperparameters(&options_); }
  absl::Status Check(const RunDirectory* resumed) override;
  absl::Status Prepare(Parameters* parameters) override;
  const TrainingOptions& training() const override { return options_.training; }
  nlohmann::ordered_json Model() const override;
  std::string Title(const Parameters& parameters) const override;
  absl::Status WriteFiles(const RunDirectory& run) const override;
  // Generates a sample with the trained model and writes it to sample.txt, unless "sample-length" is 0.
  absl::StatusOr<std::string> Conclude(const RunDirectory& run, Parameters* parameters) override;

  absl::Span<const TrainingProgram> programs() const override { return training_programs_; }
  std::string data() const override { return fingerprint_; }
  absl::StatusOr<TrainingBatch> Train(int64_t step, MicroBatch micro_batch) override;
  int64_t validation_batches() const override { return options_.eval_batches * micro_batches(); }
  TrainingBatch Validate(int64_t step, int64_t index) override;

 private:
  RandomStream Random(int64_t step) const;
  int64_t micro_batches() const { return options_.training.trainer.micro_batches; }
  TrainingBatch ToBatch(MicroBatch micro_batch) const;

  GptOptions options_;
  std::string fingerprint_;
  std::optional<CharacterTokenizer> tokenizer_;
  std::optional<TokenCorpus> corpus_;
  std::vector<std::unique_ptr<GptProgram>> programs_;  // of each size of micro-batch
  std::vector<TrainingProgram> training_programs_;
  TokenBatch windows_;  // of a whole batch
};

}  // namespace weft

#endif  // WEFT_TRAIN_GPT_JOB_H_
