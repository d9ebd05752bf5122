// A BucketJob trains on examples of different lengths. Batches hold examples of similar length, and each length of
// batch has its own program (text/data/buckets.h). Derived jobs, such as TranslateJob and ClassifyJob, encode the
// examples, record a program for a shape, and fill a micro-batch.
#ifndef WEFT_TRAIN_JOBS_BUCKET_JOB_H_
#define WEFT_TRAIN_JOBS_BUCKET_JOB_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/data/buckets.h"
#include "weft/text/data/corpus.h"
#include "weft/train/jobs/job.h"

namespace weft {

class BucketJob : public TrainingJob {
 public:
  absl::Status Check(const RunDirectory* resumed) override;
  int64_t batches_per_epoch() const override { return batches_per_epoch_; }
  absl::StatusOr<TrainingBatch> Train(int64_t step, MicroBatch micro_batch) override;
  int64_t validation_batches() const override { return validate_->size() * micro_batches(); }
  absl::StatusOr<TrainingBatch> Validate(int64_t step, int64_t index) override;
  absl::StatusOr<ProgramCounts> CountPrograms(int64_t steps) override;

 protected:
  using TrainingJob::TrainingJob;

  // Rows holds the values of a batch, which stay valid until the next call of Fill.
  struct Rows {
    std::vector<Feed> inputs;         // one for each input that Record declared, in that order
    int64_t tokens = 0, targets = 0;  // as TrainingBatch has them
  };
  // The shape [rows, length] of the tokens of a micro-batch.
  struct Shape {
    int64_t rows = 0, length = 0;
  };
  // The examples of a micro-batch, at most shape.rows of them.
  struct Examples {
    DataSplit split = DataSplit::kTrain;
    int64_t number = 0;  // of the training step, or of the batch in an evaluation
    MicroBatch micro_batch;
    int64_t begin = 0;  // position of the first example in its batch
    absl::Span<const int32_t> indices;
    Shape shape;
  };
  // Records the program for micro-batches of `shape`. Sets `inputs` to its inputs.
  virtual TrainingProgram Record(Shape shape, Tape* tape, VarList* inputs) = 0;
  virtual absl::StatusOr<Rows> Fill(const Examples& examples) = 0;
  // Prepares the training examples of `epoch`, 0, 1 and so on. Returns their lengths, each at most longest_bucket(). An
  // empty list means the lengths of SetLengths. The result depends on the seed and `epoch` alone.
  virtual absl::StatusOr<std::vector<int64_t>> BeginEpoch(int64_t /*epoch*/) { return std::vector<int64_t>(); }
  // Returns the length of the longest bucket, or 0 before SetLengths.
  int64_t longest_bucket() const { return lengths_.empty() ? 0 : lengths_.back(); }

  // Returns the row of the option r-drop. `needs`: HyperparameterRules::needs.
  Hyperparameter RDropRow(const char* needs = "");
  // With r-drop, the model computes each row of a batch twice, with different dropout. Twice(x) returns the rows of an
  // input x [B, ...] and the same rows once more, and Once(y) the first half of a result y [2B, ...]. Without r-drop,
  // both return their argument.
  Var Twice(Var x) const { return r_drop_ > 0 ? Concat({x, x}, 0) : x; }
  Var Once(Var y) const { return r_drop_ > 0 ? Split(y, 0, 2)[0] : y; }
  // Returns the program of the cross-entropy of `logits`, computed from Twice of the inputs, at `targets`, i32 [B,
  // ...]. With r-drop, the training loss is half of the paper's: (loss of the first half + loss of the second) / 2 +
  // r-drop / 4 · SymmetricDivergence of the halves. The validation loss is that of the first half.
  TrainingProgram LossOf(Var logits, Var targets, const CrossEntropyOptions& options = {}) const;

  // Divides the examples of both splits into batches by their lengths, and records the program of each bucket. No
  // length may exceed `longest`.
  void SetLengths(absl::Span<const int64_t> train, absl::Span<const int64_t> validation, int64_t longest);

 private:
  struct Recorded {
    Shape shape;
    Tape tape;
    VarList inputs;
  };

  // Returns the program of a micro-batch.
  size_t ProgramOf(const BucketBatch& batch, MicroBatch micro_batch) const;
  absl::StatusOr<TrainingBatch> ToBatch(DataSplit split, int64_t number, const BucketBatch& batch,
                                        MicroBatch micro_batch);

  double r_drop_ = 0;
  std::vector<int64_t> lengths_;  // of the buckets
  std::unique_ptr<BucketBatches> train_, validate_;
  int64_t batches_per_epoch_ = 0;  // of SetLengths
  int64_t epoch_ = -1;             // of train_; -1: BeginEpoch was not called
  std::deque<Recorded> recorded_;  // for each bucket, and in it for each size of micro-batch
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_BUCKET_JOB_H_
