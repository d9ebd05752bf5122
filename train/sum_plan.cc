// Walks the micro-batches in order, with a stack of sums and a list of free slots.
#include "weft/train/sum_plan.h"

#include <algorithm>

namespace weft {

SumPlan PlanSums(absl::Span<const IndexRange> blocks) {
  struct Sum {
    int slot, level;  // 2^level pairs
  };
  SumPlan plan;
  std::vector<Sum> sums;  // of the current block: the oldest first; levels decrease
  std::vector<int> free;
  for (const IndexRange& block : blocks) {
    for (const Sum& sum : sums) plan.blocks.push_back(sum.slot);
    sums.clear();
    for (int64_t i = block.begin; i < block.end; i += 2) {
      if (free.empty()) free.push_back(plan.slots++);
      SumPlan::Pair& pair = plan.pairs.emplace_back(SumPlan::Pair{i, std::min(i + 2, block.end), free.back(), {}});
      free.pop_back();
      Sum sum = {pair.slot, 0};
      // The last sums of the last block stay separate, so that the update can add them.
      const bool last = i + 2 >= block.end && &block == &blocks.back();
      while (!last && !sums.empty() && sums.back().level == sum.level) {
        pair.adds.push_back({sums.back().slot, sum.slot});
        free.push_back(sum.slot);
        sum = {sums.back().slot, sum.level + 1};
        sums.pop_back();
      }
      sums.push_back(sum);
    }
  }
  for (auto sum = sums.rbegin(); sum != sums.rend(); ++sum) plan.left.push_back(sum->slot);
  return plan;
}

}  // namespace weft
