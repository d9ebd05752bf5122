// Buckets: examples of similar length in batches of few shapes, in another order each epoch.
//
//   const std::vector<int64_t> lengths = BucketLengths(lengths_of_examples, {.rows = 64});   // a program for each
//   BucketBatches batches(lengths, lengths_of_examples, 64);
//   for (int64_t step = 0; step < 10 * batches.size(); ++step) ... batches.AtStep(seed, step).examples ...
#ifndef WEFT_TEXT_BUCKETS_H_
#define WEFT_TEXT_BUCKETS_H_

#include <cstdint>
#include <optional>
#include <utility>
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
// a batch of examples would be in, which the next longer one takes. Examples that are held out for validation change
// none of these; if one is longer than all, there is one bucket more.
std::vector<int64_t> BucketLengths(absl::Span<const int64_t> lengths, absl::Span<const int64_t> held_out,
                                   const BucketOptions& options);

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
  BucketBatch operator[](int64_t index) const;  // in the order of the last AtStep; else in that of the data
  // The batch of a step of training: each epoch of size() steps has the batches in an order of its own, in which the
  // examples of each bucket are, too. It depends on seed and step alone.
  BucketBatch AtStep(uint64_t seed, int64_t step);

 private:
  void Shuffle(RandomStream random);

  struct Batch {
    size_t bucket, begin, end;  // examples begin .. end - 1 of the bucket
  };
  std::vector<std::vector<int32_t>> buckets_, shuffled_;  // examples
  std::vector<Batch> in_order_, batches_;
  std::optional<std::pair<uint64_t, int64_t>> shuffled_for_;  // seed and epoch
};

}  // namespace weft

#endif  // WEFT_TEXT_BUCKETS_H_
