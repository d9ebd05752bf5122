// Plans how ranks add the gradients of a step's micro-batches, such that every rank gets the same bits as one rank
// alone. A plan is data: it sends nothing and computes nothing.
//
//   const IndexRange ranges[] = {{0, 3}, {3, 6}, {6, 8}};  // of ranks 0, 1, 2
//   WEFT_ASSIGN_OR_RETURN(const auto plans, PlanReduction(ReductionKind::kScatter, ranges));
//   for (const ReductionAction& action : plans[rank].actions) Record(action);
//
// Sums follow the binary tree of train/step/training_step.h. A value of the tree is the sum of a range of
// micro-batches. A range of n > 1 micro-batches is cut after the first 2^k, where 2^k is the largest power of two below
// n; its value is left + right. A block is a maximal range of the tree whose micro-batches all belong to one rank. This
// rank computes the block's value alone. Every larger range spans several ranks, and its sum is planned here. Three
// ranks and eight micro-batches:
//
//   micro-batch    0   1   2   3   4   5   6   7
//   rank           0   0   0   1   1   1   2   2
//   blocks        (0   0) (0) (1) (1   1) (2   2)
//                    |      \ /       \     /
//                    |      0,1        1,2         the sums of 2..3 and 4..7; below each sum stand its ranks
//                     \     /          /
//                       0,1           /            the sum of 0..3
//                          \         /
//                            0, 1, 2               the sum of 0..7
//
// Rank 0 has two blocks, because the tree adds micro-batch 2 to micro-batch 3 first, and then adds 0..1.
//
// Recursive doubling (kDoubling): every rank of a sum computes it. A rank that has only one operand receives the other.
// Each message has the whole value. This minimises the number of messages that follow one another, so it suits small
// values.
//
// Reduce-scatter and all-gather (kScatter): the value is cut into one piece for each rank. Each piece of a sum is
// computed by one of the two ranks that have its operands. Afterwards, the ranks exchange the pieces of the total. This
// minimises the bytes, so it suits large values.
//
// If each of N ranks has 2^k micro-batches, and N is a power of two, both kinds are the well-known algorithms of these
// names. A rank exchanges values with one partner at each of the distances 1, 2, 4, ..., N/2: a whole value, or one run
// of pieces that is halved each time. The pieces of the total then come back at the distances N/2, ..., 2, 1. In each
// phase of kScatter, each rank sends (N - 1)/N of a value.
//
// Other numbers of ranks and micro-batches work, but cost more messages and bytes. Compared with (N - 1)/N of a value,
// for N <= 16, a rank sends at most 1.5 times as much in the second phase. In the first phase it sends no more if each
// rank has 2^k micro-batches. Otherwise it sends at most 3.7 times as much for up to 8 N micro-batches.
#ifndef WEFT_DISTRIBUTED_REDUCTION_H_
#define WEFT_DISTRIBUTED_REDUCTION_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/distributed/index_range.h"

namespace weft {

enum class ReductionKind { kDoubling, kScatter };

// The place where a rank has a value: one of its blocks, or the output of an earlier receive or sum.
struct ReductionSource {
  enum Kind { kBlock, kAction };

  Kind kind = kBlock;
  int index = 0;  // of ReductionPlan::blocks or ReductionPlan::actions
  bool operator==(const ReductionSource&) const = default;
};

// An action of one rank on pieces piece_begin .. piece_end - 1 of a value.
struct ReductionAction {
  enum Kind { kSend, kReceive, kAdd };
  enum Phase {
    kReduce,  // adds the values of all ranks
    kGather,  // exchanges pieces of the total, which is the value of all micro-batches
  };

  Kind kind = kSend;
  Phase phase = kReduce;
  IndexRange value;  // micro-batches whose sum is sent, received or computed
  int piece_begin = 0, piece_end = 0;
  int peer = -1;  // the other rank of a message; -1: kAdd
  int tag = -1;   // 0, 1, 2, ... for the messages from one rank to another; -1: kAdd
  // kAdd: the left and the right operand, each with all pieces of the action. kSend in the phase kReduce: one source
  // with all pieces. kSend in the phase kGather: all sources that have some of the pieces, in the order of the pieces.
  // kReceive: none.
  absl::InlinedVector<ReductionSource, 2> sources;
  bool operator==(const ReductionAction&) const = default;
};

// The actions of one rank. If each rank runs its actions in order, sends without waiting, and waits in each receive, no
// rank waits forever. Each send has one receive with the same tag, value and pieces.
struct ReductionPlan {
  int pieces = 1;                  // number of pieces of each value; see PieceRange
  std::vector<IndexRange> blocks;  // of this rank, from left to right; together they have all its micro-batches
  std::vector<ReductionAction> actions;
  std::vector<ReductionSource> result;  // for each piece: the source of the total
};

// Plans the sum of all micro-batches on all ranks, and returns the plan of each rank. `ranges[r]` has the micro-batches
// of rank r. Returns InvalidArgument if there is no range, or if a range is empty or does not begin where the previous
// one ends.
absl::StatusOr<std::vector<ReductionPlan>> PlanReduction(ReductionKind kind, absl::Span<const IndexRange> ranges);

// 64 elements: at least a cache line of every type, so no two pieces share one.
inline constexpr int64_t kPieceQuantum = 64;

// Returns the elements of piece `piece`, if a value of `elements` elements is cut into `pieces` pieces. Pieces follow
// each other. They begin at multiples of `quantum`, and differ by at most one quantum. Small values have empty pieces.
IndexRange PieceRange(int64_t elements, int pieces, int piece, int64_t quantum = kPieceQuantum);

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_REDUCTION_H_
