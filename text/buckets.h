// Groups examples of similar length into buckets, so that batches have few shapes, and shuffles the batches each epoch.
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
  int64_t rows = 1;      // of a batch
  int64_t multiple = 8;  // bucket lengths are multiples of this, except the longest
  int64_t longest = 0;   // the longest bucket, which no example exceeds; 0: no limit
};
// Returns the lengths of buckets for examples of these lengths, in rising order. A bucket with less than half a batch
// of examples is merged into the next longer one. `held_out`, the lengths of validation examples, changes none of
// these, but adds a bucket if one of them is longer than all.
std::vector<int64_t> BucketLengths(absl::Span<const int64_t> lengths, absl::Span<const int64_t> held_out,
                                   const BucketOptions& options);

struct BucketBatch {
  size_t bucket = 0;
  absl::Span<const int32_t> examples;  // at most `rows`; fewer in a bucket's last batch
};

// The batches of an epoch. They have each example once, in the shortest bucket that holds it.
class BucketBatches {
 public:
  // `buckets`: the buckets' lengths, rising. `lengths`: the examples' lengths, none above the last bucket's.
  BucketBatches(absl::Span<const int64_t> buckets, absl::Span<const int64_t> lengths, int64_t rows);

  int64_t size() const { return static_cast<int64_t>(batches_.size()); }
  // Returns a batch in the order of the last AtStep or, before the first, in the order of the data.
  BucketBatch operator[](int64_t index) const;
  // Returns the batch of a training step. An epoch has size() steps; each epoch shuffles the examples of each bucket
  // and the batches. The result depends on `seed` and `step` alone.
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
