// Checks the values that a caller feeds to an input of Runner::Run.
#ifndef WEFT_GRAPH_FEEDS_H_
#define WEFT_GRAPH_FEEDS_H_

#include "absl/status/status.h"
#include "weft/core/program.h"
#include "weft/core/tensor.h"

namespace weft {

// Returns OutOfRange if an integer of `tensor`, which is fed to the input `spec`, breaks the input's bounds. The
// message names the input and the integer's position.
absl::Status CheckBounds(const InputSpec& spec, const Tensor& tensor);

}  // namespace weft

#endif  // WEFT_GRAPH_FEEDS_H_
