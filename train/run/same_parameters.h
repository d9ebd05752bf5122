// CheckSameParameters compares the weights and the optimizer's state of all ranks. All ranks compute the same bits, so
// a difference is a fault of a machine, such as memory that changed silently, or other initial weights.
//
//   if (step % 100 == 0) WEFT_RETURN_IF_ERROR(CheckSameParameters(ranks, parameters, step));
#ifndef WEFT_TRAIN_RUN_SAME_PARAMETERS_H_
#define WEFT_TRAIN_RUN_SAME_PARAMETERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "weft/core/parameters.h"
#include "weft/distributed/ranks.h"

namespace weft {

// Compares checksums of Parameters::kAll after `step` updates. Waits for all ranks, and returns the same on each: OK,
// or DataLoss. The message names the ranks that differ from the majority, and the first parameter that differs. If
// there is no majority, as with two ranks, the message names all ranks.
absl::Status CheckSameParameters(const Ranks& ranks, const Parameters& parameters, int64_t step);

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_SAME_PARAMETERS_H_
