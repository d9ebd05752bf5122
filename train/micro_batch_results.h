// The figures of each micro-batch of a step. Ranks exchange them and compute their sums.
//
//   const std::vector<MicroBatchResult> all = GatherResults(ranks, mine);
//   const double targets = TreeSum(all, &MicroBatchResult::targets);
#ifndef WEFT_TRAIN_MICRO_BATCH_RESULTS_H_
#define WEFT_TRAIN_MICRO_BATCH_RESULTS_H_

#include <vector>

#include "absl/types/span.h"
#include "weft/distributed/ranks.h"

namespace weft {

struct MicroBatchResult {
  double loss = 0;     // the sum over the targets
  double targets = 0;  // number of targets
  double tokens = 0;   // number of tokens that are not padding
};

// Returns the results of all micro-batches, in order. `mine`: those of this rank's micro-batches. Every rank must call
// this function with at least one result.
std::vector<MicroBatchResult> GatherResults(const Ranks& ranks, absl::Span<const MicroBatchResult> mine);

// Returns the sum of one figure in the order in which gradients are added: neighbours first, then neighbouring pairs.
double TreeSum(absl::Span<const MicroBatchResult> results, double MicroBatchResult::*figure);

}  // namespace weft

#endif  // WEFT_TRAIN_MICRO_BATCH_RESULTS_H_
