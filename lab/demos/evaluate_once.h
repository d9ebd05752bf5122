// EvaluateOnce compiles a tape, runs it once, and returns values as numbers.
//
//   WEFT_ASSIGN_OR_RETURN(const std::vector<Numbers> v, EvaluateOnce(tape, {mean, variance}, {.seed = 1}));
//   v[0][0]  // the mean
#ifndef WEFT_LAB_DEMOS_EVALUATE_ONCE_H_
#define WEFT_LAB_DEMOS_EVALUATE_ONCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/graph/runner.h"

namespace weft {

using Numbers = std::vector<double>;

struct EvaluateOnceOptions {
  uint64_t seed = 1;  // of the parameters' initial values
  std::vector<FeedPair> feeds = {};
};

// Returns the elements of each of `fetch`, which must be f32 or f64.
absl::StatusOr<std::vector<Numbers>> EvaluateOnce(const Tape& tape, const VarList& fetch,
                                                  const EvaluateOnceOptions& options = {});

}  // namespace weft

#endif  // WEFT_LAB_DEMOS_EVALUATE_ONCE_H_
