// BertJob trains a BERT (models/bert.h) to predict the masked tokens of a text, from initial or published weights.
#ifndef WEFT_TRAIN_JOBS_BERT_JOB_H_
#define WEFT_TRAIN_JOBS_BERT_JOB_H_

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "weft/core/random.h"
#include "weft/core/tape.h"
#include "weft/models/lora.h"
#include "weft/text/corpus.h"
#include "weft/text/masking.h"
#include "weft/train/jobs/job.h"
#include "weft/train/jobs/model_source.h"
#include "weft/train/jobs/training_tokenizer.h"

namespace weft {

class BertJob final : public TrainingJob {
 public:
  BertJob();

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
  const TrainingOptions& training() const override { return training_; }
  nlohmann::ordered_json Model() const override;
  std::string Title(const Parameters& parameters) const override;
  absl::Status Initialize(Parameters* parameters) override {
    return source_.Initialize({"cls.", "pooler."}, {}, parameters);
  }
  absl::Status WriteFiles(RunDirectory* run) const override { return tokenizer_.Write(run); }
  const LoraOptions& lora() const override { return lora_; }
  InitialWeights initial_weights() const override { return source_.initial_weights(); }

  absl::Span<const TrainingProgram> programs() const override { return programs_; }
  std::string data() const override { return fingerprint_; }
  absl::StatusOr<TrainingBatch> Train(int64_t step, MicroBatch micro_batch) override;
  int64_t validation_batches() const override { return eval_batches_ * micro_batches(); }
  absl::StatusOr<TrainingBatch> Validate(int64_t step, int64_t index) override;

 private:
  // The program for a size of micro-batch.
  struct Recorded {
    Tape tape;
    Var tokens, segments;           // i32 [B, T]
    Var masked_positions, targets;  // i32 [B·M] for M masked tokens a row: their indices in B·T; their tokens
    Var is_next;                    // i32 [B]: 0 if the second half of a row follows the first, else 1
  };

  int64_t micro_batches() const { return training_.trainer.micro_batches; }
  void Record(int64_t rows);
  // Returns a micro-batch of batch `index` of `split`.
  TrainingBatch Sample(DataSplit split, int64_t index, RandomStream random, MicroBatch micro_batch);
  void AppendRow(absl::Span<const int32_t> window, absl::Span<const int32_t> second);
  int64_t length() const { return source_.config().context; }

  // Options.
  std::string data_path_, validation_path_;
  ModelSource<PublishedBert> source_{
      {.context = 128, .layers = 4, .heads = 4, .width = 256, .feed_forward = 1024, .dropout = 0.1}};
  TrainingTokenizer tokenizer_ = BertTokenizer(8000);
  bool next_sentence_ = false;
  LoraOptions lora_ = {.targets = "*.query,*.value", .also_train = "cls.*,pooler.dense"};
  double masked_ = 0.15;  // fraction of the tokens to mask
  int64_t batch_ = 32, eval_batches_ = 20;
  TrainingOptions training_;

  std::string fingerprint_;
  std::optional<TokenCorpus> corpus_;
  int32_t classification_ = 0, separator_ = 0;
  MaskingOptions masking_;
  std::deque<Recorded> recorded_;  // for each size of micro-batch
  std::vector<TrainingProgram> programs_;
  // The values of a micro-batch.
  TokenBatch windows_, others_;
  std::vector<int32_t> rows_, row_segments_, row_is_next_;
  std::vector<bool> may_mask_;
  MaskedPositions row_masks_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_BERT_JOB_H_
