// Checks the tokens that a model reads, or truncates them.
#ifndef WEFT_INFERENCE_INPUT_TOKENS_H_
#define WEFT_INFERENCE_INPUT_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Returns InvalidArgument, "WHOSE has no tokens", unless there are 1 to `context` tokens from 0 to `vocabulary` - 1.
absl::Status CheckTokens(absl::string_view whose, absl::Span<const int32_t> tokens, int64_t context,
                         int64_t vocabulary);

// Ensures that `ids` and `special` special tokens together fit `context`. If they do not and `truncate` is set, drops
// tokens from the end of `ids`; otherwise returns InvalidArgument with both lengths.
absl::Status FitContext(size_t special, int64_t context, bool truncate, std::vector<int32_t>* ids);

}  // namespace weft

#endif  // WEFT_INFERENCE_INPUT_TOKENS_H_
