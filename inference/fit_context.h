// FitContext checks that a text's tokens fit the context of a model, or truncates them.
#ifndef WEFT_INFERENCE_FIT_CONTEXT_H_
#define WEFT_INFERENCE_FIT_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace weft {

// Ensures that `ids` and `special` special tokens together fit `context`. If they don't fit and `truncate` is set,
// drops tokens from the end of `ids`. Without `truncate`, returns InvalidArgument with both lengths.
absl::Status FitContext(size_t special, int64_t context, bool truncate, std::vector<int32_t>* ids);

}  // namespace weft

#endif  // WEFT_INFERENCE_FIT_CONTEXT_H_
