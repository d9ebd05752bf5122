// Checks that a text's tokens fit a model's context, or truncates them.
#ifndef WEFT_INFERENCE_FIT_CONTEXT_H_
#define WEFT_INFERENCE_FIT_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace weft {

// Ensures that `ids` and `special` special tokens together fit `context`. If they do not and `truncate` is set, drops
// tokens from the end of `ids`; otherwise returns InvalidArgument with both lengths.
absl::Status FitContext(size_t special, int64_t context, bool truncate, std::vector<int32_t>* ids);

}  // namespace weft

#endif  // WEFT_INFERENCE_FIT_CONTEXT_H_
