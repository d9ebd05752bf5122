// Plans the buffers in which one rank adds the gradients of its micro-batches. train/training_step.h gives the order.
//
// A slot is a set of buffers, one for each trained weight, which holds one sum of gradients. The two micro-batches of a
// pair add their gradients in one free slot. Then neighbouring sums of equal size are added, like the carries of a
// binary counter. Each such addition frees a slot. So n micro-batches need at most log2(n) slots, rounded up, and no
// sum is ever copied.
//
//   const SumPlan plan = PlanSums({{0, 8}});  // one block: all micro-batches of one process
#ifndef WEFT_TRAIN_SUM_PLAN_H_
#define WEFT_TRAIN_SUM_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "weft/distributed/reduction.h"

namespace weft {

struct SumPlan {
  struct Add {
    int to, from;  // slot `to` ← slot `to` + slot `from`
  };
  struct Pair {
    int64_t begin, end;     // its one or two micro-batches
    int slot;               // the slot that adds their gradients
    std::vector<Add> adds;  // additions after the pair; each adds the newest sum to the one before it
  };
  std::vector<Pair> pairs;  // in the order of micro-batches
  std::vector<int> blocks;  // the slots of the blocks, except the last block
  // The slots of the sums of the last block, the newest first. They are still to be added, in this order.
  std::vector<int> left;
  int slots = 0;
};

// Plans the sums of the blocks of a rank (ReductionPlan::blocks).
SumPlan PlanSums(absl::Span<const IndexRange> blocks);

}  // namespace weft

#endif  // WEFT_TRAIN_SUM_PLAN_H_
