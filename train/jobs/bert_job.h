// BertJob trains a BERT (models/bert.h) to predict the masked tokens of a text, from initial or published weights.
#ifndef WEFT_TRAIN_JOBS_BERT_JOB_H_
#define WEFT_TRAIN_JOBS_BERT_JOB_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "weft/core/random.h"
#include "weft/core/tape.h"
#include "weft/text/data/corpus.h"
#include "weft/text/data/masking.h"
#include "weft/train/jobs/job.h"
#include "weft/train/jobs/model_source.h"
#include "weft/train/jobs/training_tokenizer.h"

namespace weft {

class BertJob final : public TrainingJob {
 public:
  BertJob();

  Hyperparameters Table() override;
  absl::Status Prepare(Parameters* parameters) override;
  std::string Title(const Parameters& parameters) const override;
  absl::Status Initialize(Parameters* parameters) override {
    return model_.Initialize({"cls.", "pooler."}, {}, parameters);
  }
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

  void Record(int64_t rows);
  // Returns a micro-batch of batch `index` of `split`.
  TrainingBatch Sample(DataSplit split, int64_t index, RandomStream random, MicroBatch micro_batch);
  void AppendRow(absl::Span<const int32_t> window, absl::Span<const int32_t> second);
  int64_t length() const { return model_.config().context; }

  // Options.
  std::string data_path_, validation_path_;
  SourceOf<PublishedBert> model_{
      {.context = 128, .layers = 4, .heads = 4, .width = 256, .feed_forward = 1024, .dropout = 0.1}};
  TrainingTokenizer tokenizer_ = BertTokenizer(8000);
  bool next_sentence_ = false;
  double masked_ = 0.15;  // fraction of the tokens to mask
  int64_t eval_batches_ = 20;

  std::optional<TokenCorpus> corpus_;
  int32_t classification_ = 0, separator_ = 0;
  MaskingOptions masking_;
  std::deque<Recorded> recorded_;  // for each size of micro-batch
  // The values of a micro-batch.
  TokenBatch windows_, others_;
  std::vector<int32_t> rows_, row_segments_, row_is_next_;
  std::vector<bool> may_mask_;
  MaskedPositions row_masks_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_BERT_JOB_H_
