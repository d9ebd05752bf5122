// Records the messages and sums that add the gradients of all ranks, weight by weight, on a tape. The sums follow the
// tree of distributed/reduction.h, so the totals have the same bits on any number of ranks.
//
//   WEFT_ASSIGN_OR_RETURN(const AllReduce reduce, AllReduce::Create(ranges, rank));
//   const VarList totals = reduce.Record(weights, &updates);
//
// Small weights share a bucket: their gradients are joined to one value, which travels by recursive doubling. A large
// weight has a bucket of its own, which is reduced in pieces. All ranks must record the same weights in the same order,
// because messages find each other by tags, and because this order keeps ranks from waiting for each other in a circle.
#ifndef WEFT_DISTRIBUTED_ALL_REDUCE_H_
#define WEFT_DISTRIBUTED_ALL_REDUCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/distributed/message_ops.h"
#include "weft/distributed/reduction.h"

namespace weft {

// Default size of a bucket in bytes. Latency is then at most 1/8 of a message's time.
inline constexpr int64_t kBucketBytes = static_cast<int64_t>(8 * kMessageSeconds * kNetworkBytesPerSecond);

class AllReduce {
 public:
  // The gradient sums of one weight on this rank: one state for each of blocks(), from left to right, in the versions
  // that hold the blocks' sums. All have the weight's type.
  using Blocks = VarList;

  // `ranges[r]`: the micro-batches of rank r. `rank`: this rank. `bucket_bytes`: buckets have at least this size, if
  // the weights have.
  static absl::StatusOr<AllReduce> Create(absl::Span<const MicroBatchRange> ranges, int rank,
                                          int64_t bucket_bytes = kBucketBytes);

  // Returns the blocks of this rank, from left to right.
  const std::vector<MicroBatchRange>& blocks() const { return doubling_.blocks; }
  // Records the sums over all ranks, and writes each total to the state of the weight's last block. Appends the new
  // versions of these states, and the sends, to `updates`. The weights come in the order in which their gradients are
  // usually computed. If there are too many buckets for the tags, the tape gets an error (Tape::Fail).
  void Record(absl::Span<const Blocks> weights, VarList* updates) const;

 private:
  AllReduce() = default;
  void RecordSmall(absl::Span<const Blocks> weights, int first_tag, VarList* updates) const;
  void RecordLarge(const Blocks& blocks, int first_tag, VarList* updates) const;

  ReductionPlan doubling_, scatter_;  // of this rank
  int tags_ = 0;                      // of a bucket
  int64_t bucket_bytes_ = kBucketBytes;
};

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_ALL_REDUCE_H_
