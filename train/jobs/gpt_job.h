// GptJob trains a GPT (models/gpt.h) on texts, or on token files (text/data/token_files.h). GptOptions are the options
// that decide its program, and GptProgram is this program, which the graph commands print.
//
//   GptOptions options;
//   options.model.vocabulary = 65;
//   const std::unique_ptr<GptProgram> program = RecordTraining(options);
//   Compile(program->tape, {.fetch = {program->training.loss}});
#ifndef WEFT_TRAIN_JOBS_GPT_JOB_H_
#define WEFT_TRAIN_JOBS_GPT_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/distributed/index_range.h"
#include "weft/formats/config_json.h"
#include "weft/models/gpt.h"
#include "weft/models/lora.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/data/corpus.h"
#include "weft/text/data/token_files.h"
#include "weft/text/data/token_sources.h"
#include "weft/train/jobs/job.h"
#include "weft/train/loop/options.h"
#include "weft/train/step/task.h"

namespace weft {

struct GptOptions {
  GptConfig model = CharacterGpt();
  int64_t batch = 12;
  LoraOptions lora;
  TrainingOptions training = {.optimizer = AdamW({.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .clip = 1.0})};
  std::string documents = "across";  // attention "across" documents or within "separate" ones, which needs token files
};

struct GptProgram {
  Tape tape;
  Var tokens, targets;  // inputs i32 [B, T]
  Var documents;        // input i32 [B, T], numbers of the tokens' documents; null unless they are separate
  TrainingProgram training;
};
// Records the loss of a batch of `rows` windows; 0: of options.batch windows.
std::unique_ptr<GptProgram> RecordTraining(const GptOptions& options, int64_t rows = 0);

// The data of a training: texts or token files, for training and for validation, and the tokenizer
// (train/jobs/gpt_data.cc).
class GptData {
 public:
  // `tokenizer` must outlive the data.
  explicit GptData(TrainingTokenizer* tokenizer) : tokenizer_(*tokenizer) {}

  Hyperparameters Table();  // rows data and validation
  // Reports whether the data is token files, which know where documents begin.
  bool is_token_files() const { return TokenSources::Names(data_); }

  // Opens the data, whose windows have `context` tokens, and reads or learns the tokenizer. Must be called before the
  // other functions. `missing`: see TokenFiles::Open.
  absl::Status Open(int64_t context, MissingShards missing = MissingShards::kRefuse);

  const std::string& fingerprint() const { return sources_->fingerprint(); }
  int64_t size(DataSplit split) const { return sources_->size(split); }
  // Returns "3840000 characters (87 different)".
  std::string Counts() const;
  // Returns the bytes of the text of `tokens`, or 0 if they are not known.
  int64_t Bytes(absl::Span<const int32_t> tokens) const;
  // Draws the windows `now`. From token files, also begins to read the windows `next`.
  absl::Status Draw(const WindowOptions& now, const WindowOptions& next, TokenBatch* out);
  // Returns the number of missing shards of token files.
  int64_t missing_files() const { return sources_->missing_files(); }
  // Returns NotFound with the path of a missing shard that Draw would need. Reads no file.
  absl::Status Check(const WindowOptions& windows) const { return sources_->Check(windows); }

 private:
  absl::Status OpenTexts(int64_t context);
  absl::Status OpenTokenFiles(int64_t context);
  absl::Status OpenValidation(int64_t context);

  std::string data_, validation_;
  MissingShards missing_ = MissingShards::kRefuse;
  TrainingTokenizer& tokenizer_;
  std::vector<int32_t> token_bytes_;  // by id
  std::unique_ptr<TokenSources> sources_;
  std::unique_ptr<ReadAhead> ahead_;  // null for texts, which are in memory
};

class GptJob final : public TrainingJob {
 public:
  GptJob() : GptJob(GptOptions()) {}

  Hyperparameters Table() override;
  absl::Status Prepare(Parameters* parameters) override;
  GptOptions options() const { return {model_.config(), batch_, lora_, training_, documents_}; }
  // Returns the number of batches of an epoch, or 0 if no option asks for epochs. The random windows of an epoch have
  // together the length of the data.
  int64_t batches_per_epoch() const override;
  std::string Title(const Parameters& parameters) const override;
  absl::Status WriteFiles(RunDirectory* run) const override;
  // Generates a sample with the trained model and writes it to sample.txt, unless "sample-length" is 0.
  absl::StatusOr<std::string> Conclude(const RunDirectory& run, Parameters* parameters) override;

  // Returns the text that sample.txt would get now, at most 100 tokens; or "", if adapters are trained.
  absl::StatusOr<std::string> Sample(Parameters* parameters) const override;

  absl::StatusOr<TrainingBatch> Train(int64_t step, MicroBatch micro_batch) override;
  int64_t validation_batches() const override { return eval_batches_ * micro_batches(); }
  absl::StatusOr<TrainingBatch> Validate(int64_t step, int64_t index) override;

 private:
  explicit GptJob(const GptOptions& defaults);
  int64_t context() const { return model_.config().context; }
  absl::StatusOr<std::string> Generate(int64_t length, Parameters* parameters) const;
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

  // Options.
  SourceOf<PublishedGpt> model_;
  TrainingTokenizer tokenizer_ = GptTokenizer();
  GptData data_{&tokenizer_};
  std::string documents_;  // as in GptOptions
  // The positions of training windows: "anywhere" in the data; or "by-row": those of row i of B are in part i of B.
  std::string window_positions_ = "anywhere";
  int64_t epochs_ = 0;  // passes over the data, in random windows; 0: training() has the number of steps
  int64_t eval_batches_ = 200;
  double input_noise_ = 0;  // fraction of the input tokens that are replaced by random tokens in training
  int64_t sample_length_ = 500;
  double sample_temperature_ = 0.8;

  std::vector<std::unique_ptr<GptProgram>> recorded_;  // of each size of micro-batch
  TokenBatch windows_;
  std::optional<WindowOptions> drawn_;  // the options of `windows_`; unset: no windows
  std::optional<absl::Status> shards_;  // the result of CheckShards
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_GPT_JOB_H_
