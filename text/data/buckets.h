// Buckets group examples of similar length, so that batches have few shapes. Each epoch shuffles its batches.
//
//   const std::vector<int64_t> lengths = BucketLengths(lengths_of_examples, /*held_out=*/{}, /*rows=*/64);
//   BucketBatches batches(lengths, lengths_of_examples, 64);
//   for (int64_t step = 0; step < 10 * batches.size(); ++step) {
//     const BucketBatch batch = batches.AtStep(seed, step);
//     // texts: token ids; rows: PaddedRows
//     rows.Fill(texts, batch.examples, {.rows = 64, .length = lengths[batch.bucket]});
//     runner.Run({{tokens, rows.tokens}, {lengths, rows.lengths}});
//   }
#ifndef WEFT_TEXT_DATA_BUCKETS_H_
#define WEFT_TEXT_DATA_BUCKETS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/random.h"

namespace weft {

// Returns the lengths of buckets for examples of these `lengths`, in ascending order: multiples of 8, or `longest`,
// which no example exceeds; 0: no maximum. If a bucket has fewer examples than half a batch of `rows`, it is merged
// into the next longer one; the longest bucket stays. `held_out` has the lengths of validation examples. If the longest
// of them exceeds all buckets, a bucket is added for it.
std::vector<int64_t> BucketLengths(absl::Span<const int64_t> lengths, absl::Span<const int64_t> held_out, int64_t rows,
                                   int64_t longest = 0);

struct BucketBatch {
  size_t bucket = 0;
  absl::Span<const int32_t> examples;  // indices: `rows` of them, or fewer in a bucket's last batch
};

// BucketBatches divides an epoch into batches. Each example is in one batch, in the shortest bucket that can hold it.
class BucketBatches {
 public:
  // `buckets`: the buckets' lengths, ascending. `lengths`: the examples' lengths, none above the last bucket's.
  BucketBatches(absl::Span<const int64_t> buckets, absl::Span<const int64_t> lengths, int64_t rows);

  int64_t size() const { return static_cast<int64_t>(batches_.size()); }
  // Returns batch `index` of the epoch that AtStep shuffled last. Before the first call of AtStep, batches are sorted
  // by bucket, and the examples of a bucket have the order of the data.
  BucketBatch operator[](int64_t index) const;
  // Returns the batch of a training step. An epoch has size() steps. Each epoch shuffles the examples inside each
  // bucket, and then the order of the batches. The result depends on `seed` and `step` alone.
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

// Returns the number of tokens of each text.
std::vector<int64_t> LengthsOf(absl::Span<const std::vector<int32_t>> texts);

// PaddedRows put texts of different lengths into the rows of a batch [B, T], with padding after each text.
struct PaddedRows {
  struct Shape {
    int64_t rows = 1, length = 1;  // B, T
    int32_t padding = 0;           // the token that fills the rest of a row
  };

  std::vector<int32_t> tokens;   // [B, T]
  std::vector<int32_t> lengths;  // [B]: the number of tokens of each text; 0 for a row without a text
  int64_t count = 0;             // tokens of all texts, without padding

  // Fills the first rows with texts[examples[0]], texts[examples[1]] and so on. There are at most `shape.rows`
  // examples, of at most `shape.length` tokens each.
  void Fill(absl::Span<const std::vector<int32_t>> texts, absl::Span<const int32_t> examples, const Shape& shape);
};

}  // namespace weft

#endif  // WEFT_TEXT_DATA_BUCKETS_H_
