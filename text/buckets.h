// Buckets: examples of similar length in batches of few shapes, in another order each epoch.
//
//   const std::vector<int64_t> lengths = BucketLengths(lengths_of_examples, {.rows = 64});   // a program for each
//   BucketBatches batches(lengths, lengths_of_examples, 64);
//   batches.Shuffle({.seed = 1, .step = epoch});
//   for (int64_t i = 0; i < batches.size(); ++i) ... batches[i].examples ...
#ifndef WEFT_TEXT_BUCKETS_H_
#define WEFT_TEXT_BUCKETS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/random.h"

namespace weft {

struct BucketOptions {
  int64_t rows = 1;     // of a batch
  int64_t step = 8;     // lengths are multiples of it
  int64_t longest = 0;  // but none is above this, which no example exceeds; 0: no limit
};
// The lengths of buckets for examples of these lengths, rising: multiples of `step`, without those that less than half
// a batch of examples would be in, which the next longer one takes.
std::vector<int64_t> BucketLengths(absl::Span<const int64_t> lengths, const BucketOptions& options);

struct BucketBatch {
  size_t bucket = 0;
  absl::Span<const int32_t> examples;  // at most `rows`; fewer in a bucket's last batch
};

// The batches of an epoch: each example once, in the shortest bucket that holds it.
class BucketBatches {
 public:
  // No example may be longer than the last bucket.
  BucketBatches(absl::Span<const int64_t> buckets, absl::Span<const int64_t> lengths, int64_t rows);

  int64_t size() const { return static_cast<int64_t>(batches_.size()); }
  BucketBatch operator[](int64_t index) const;
  // Puts the examples of each bucket, and the batches, into an order of this seed and step, whatever the one before.
  void Shuffle(RandomStream random);

 private:
  struct Batch {
    size_t bucket, begin, end;  // examples begin .. end - 1 of the bucket
  };
  std::vector<std::vector<int32_t>> buckets_, shuffled_;  // examples
  std::vector<Batch> in_order_, batches_;
};

}  // namespace weft

#endif  // WEFT_TEXT_BUCKETS_H_
