// A BucketJob trains on examples of different lengths. Batches hold examples of similar length, and each length of
// batch has its own program (text/buckets.h). Derived jobs, such as TranslateJob and ClassifyJob, encode the examples,
// record a program for a length, and fill a batch.
#ifndef WEFT_TRAIN_BUCKET_JOB_H_
#define WEFT_TRAIN_BUCKET_JOB_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/text/buckets.h"
#include "weft/text/corpus.h"
#include "weft/train/job.h"

namespace weft {

class BucketJob : public TrainingJob {
 public:
  const TrainingOptions& training() const override { return training_; }
  int64_t batches_per_epoch() const override { return train_ == nullptr ? 0 : train_->size(); }

  absl::Span<const TrainingProgram> programs() const override { return programs_; }
  std::string data() const override { return fingerprint_; }
  absl::StatusOr<TrainingBatch> Train(int64_t step) override;
  int64_t validation_batches() const override { return validate_->size(); }
  TrainingBatch Validate(int64_t step, int64_t index) override;

 protected:
  BucketJob(int64_t batch, TrainingOptions training) : batch_(batch), training_(std::move(training)) {}

  // Rows holds the values of a batch, which stay valid until the next call of Fill.
  struct Rows {
    std::vector<absl::Span<const int32_t>> inputs;  // one for each input that Record declared, in that order
    int64_t tokens = 0, targets = 0;                // as TrainingBatch has them
  };
  // Records the program for batches [batch_, length]. Sets `inputs` to its inputs, except the learning rate.
  virtual TrainingProgram Record(int64_t length, Tape* tape, VarList* inputs) = 0;
  // Fills a batch [batch_, length] with examples of `split`.
  virtual Rows Fill(DataSplit split, absl::Span<const int32_t> examples, int64_t length) = 0;

  // Divides the examples of both splits into batches by their lengths, and records the program of each bucket. No
  // length may exceed `longest`.
  void SetLengths(absl::Span<const int64_t> train, absl::Span<const int64_t> validation, int64_t longest);

  int64_t batch_;  // examples in a batch
  TrainingOptions training_;
  std::string fingerprint_;  // of the training examples

 private:
  struct Bucket {
    int64_t length = 0;
    Tape tape;
    VarList inputs;
  };

  TrainingBatch ToBatch(DataSplit split, const BucketBatch& batch);

  std::unique_ptr<BucketBatches> train_, validate_;
  std::deque<Bucket> buckets_;
  std::vector<TrainingProgram> programs_;  // of each bucket
};

}  // namespace weft

#endif  // WEFT_TRAIN_BUCKET_JOB_H_
