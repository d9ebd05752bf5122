// Records the messages and sums that add the gradients of all ranks, weight by weight, on a tape. The sums follow the
// tree of distributed/reduction.h, so the totals have the same bits on any number of ranks.
//
//   WEFT_ASSIGN_OR_RETURN(const AllReduce reduce, AllReduce::Create(ranges, rank));
//   reduce.Record(weights, &updates);
//
// Small weights share a bucket: their gradients are joined to one value, which travels by recursive doubling. A large
// weight has a bucket of its own, which is reduced in pieces of whole rows. All ranks must record the same weights in
// the same order. Sends and receives find each other by tags, which follow from this order. It also keeps ranks from
// waiting for each other in a circle.
//
// Ranks may divide the optimizer's state. Each rank then keeps its pieces of the totals and updates its pieces of the
// weights. The ranks gather the weights in place of the totals:
//
//   const AllReduce::KeepPiece keep = [&](size_t weight, WeightPiece piece, Var total) { ... };
//   reduce.Record(weights, &updates, &keep);
//   ...  // later, perhaps in another graph, after the update of this rank's pieces of `states`
//   reduce.RecordGather(states, &updates);
#ifndef WEFT_DISTRIBUTED_ALL_REDUCE_H_
#define WEFT_DISTRIBUTED_ALL_REDUCE_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/distributed/index_range.h"
#include "weft/distributed/message_ops.h"
#include "weft/distributed/piece_name.h"
#include "weft/distributed/reduction.h"

namespace weft {

// Default size of a bucket in bytes. Latency is then at most 1/8 of a message's time.
inline constexpr int64_t kBucketBytes = static_cast<int64_t>(8 * kMessageSeconds * kNetworkBytesPerSecond);

class AllReduce {
 public:
  // The gradient sums of one weight on this rank: one value for each of blocks(), from left to right. All have the
  // weight's shape. If Record writes back the total (without `keep`), the last block must be a state in its newest
  // version.
  using Blocks = VarList;
  using KeepPiece = absl::FunctionRef<void(size_t weight, const WeightPiece& piece, Var total)>;

  // `ranges[r]`: the micro-batches of rank r. `rank`: this rank. `bucket_bytes`: minimum size of a bucket. A bucket is
  // smaller only at a change of dtype and at the end.
  static absl::StatusOr<AllReduce> Create(absl::Span<const IndexRange> ranges, int rank,
                                          int64_t bucket_bytes = kBucketBytes);

  // Returns the blocks of this rank, from left to right.
  const std::vector<IndexRange>& blocks() const { return doubling_.blocks; }
  // Returns the number of the bucket of Record to which messages with `tag` belong.
  int BucketOf(int tag) const { return tag / tags_; }
  // Returns the pieces of a large matrix, in the order of rows; none is empty. The owner of a piece computes its total.
  // Other weights have no pieces. A piece begins at a block of SquareSumBlocks (ops/ops.h).
  std::vector<WeightPiece> Pieces(const TensorType& weight) const;

  // Records the sums over all ranks, and writes each total to the last of the weight's blocks. Returns the new versions
  // of these states, by weight, and appends the sends to `updates`. `weights`: in the order in which the backward pass
  // usually computes their gradients. If the buckets need more tags than exist, the tape gets an error (Tape::Fail).
  // With `keep`, a weight with pieces has an empty result: `keep` gets the total of each piece that this rank owns,
  // [elements].
  VarList Record(absl::Span<const Blocks> weights, VarList* updates, const KeepPiece* keep = nullptr) const;
  // Records the messages that complete `states`. Each state has the type of a weight with pieces, and this rank must
  // have updated the pieces that it owns. Appends the last versions of the states, and the sends, to `updates`.
  void RecordGather(VarSpan states, VarList* updates) const;
  // Records the global norm of gradients whose pieces are on different ranks. Ranks exchange the sums of squares of
  // fixed blocks of rows, so the norm has the same bits as GlobalNorm (ops/ops.h) of whole gradients. `weights`: the
  // pieces of each weight (Pieces); empty if this rank has the whole gradient. `types`: the types of the gradients of
  // these weights. `gradients`: for each weight in this order, the whole gradient, or the gradients of the pieces that
  // this rank owns. Appends the sends to `updates`. Returns f32 or f64 [].
  Var Norm(absl::Span<const std::vector<WeightPiece>> weights, absl::Span<const TensorType> types, VarSpan gradients,
           VarList* updates) const;

 private:
  AllReduce() = default;
  // Records one bucket, which has the weights with the indices `small`. Sets their totals.
  void RecordSmall(absl::Span<const Blocks> weights, absl::Span<const size_t> small, int first_tag, VarList* totals,
                   VarList* updates) const;

  ReductionPlan doubling_, scatter_;  // of this rank
  std::vector<int> owners_;           // by piece: the rank that computes its total
  int rank_ = 0;
  int tags_ = 0;  // number of tags of a bucket
  int64_t bucket_bytes_ = kBucketBytes;
};

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_ALL_REDUCE_H_
