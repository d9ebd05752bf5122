// A BucketJob keeps one tape for each length of batch, since a program has fixed shapes.
#include "weft/train/bucket_job.h"

namespace weft {

void BucketJob::SetLengths(absl::Span<const int64_t> train, absl::Span<const int64_t> validation, int64_t longest) {
  const std::vector<int64_t> lengths = BucketLengths(train, validation, {.rows = batch_, .longest = longest});
  train_ = std::make_unique<BucketBatches>(lengths, train, batch_);
  validate_ = std::make_unique<BucketBatches>(lengths, validation, batch_);
  for (const int64_t length : lengths) {
    Bucket& bucket = buckets_.emplace_back();
    bucket.length = length;
    programs_.push_back(Record(length, &bucket.tape, &bucket.inputs));
  }
}

TrainingBatch BucketJob::ToBatch(DataSplit split, const BucketBatch& batch) {
  const Bucket& bucket = buckets_[batch.bucket];
  const Rows rows = Fill(split, batch.examples, bucket.length);
  TrainingBatch result = {.program = batch.bucket, .tokens = rows.tokens, .targets = rows.targets};
  for (size_t i = 0; i < rows.inputs.size(); ++i) result.feeds.push_back({bucket.inputs[i], rows.inputs[i]});
  return result;
}

absl::StatusOr<TrainingBatch> BucketJob::Train(int64_t step) {
  return ToBatch(DataSplit::kTrain, train_->AtStep(training_.seed, step));
}

TrainingBatch BucketJob::Validate(int64_t /*step*/, int64_t index) {
  return ToBatch(DataSplit::kValidation, (*validate_)[index]);
}

}  // namespace weft
