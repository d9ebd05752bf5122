// These functions check the tokens that a model reads, or truncate them.
#ifndef WEFT_INFERENCE_INPUT_TOKENS_H_
#define WEFT_INFERENCE_INPUT_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Returns InvalidArgument, such as "WHOSE has no tokens", unless `tokens` has 1 to `context` elements, and all are from
// 0 to `vocabulary` - 1.
absl::Status CheckTokens(absl::string_view whose, absl::Span<const int32_t> tokens, int64_t context,
                         int64_t vocabulary);

// Ensures that `ids` and `special` special tokens together fit `context`. If they do not, drops tokens from the end of
// `ids` if `truncate` is set; otherwise returns InvalidArgument with both lengths.
absl::Status FitContext(size_t special, int64_t context, bool truncate, std::vector<int32_t>* ids);

}  // namespace weft

#endif  // WEFT_INFERENCE_INPUT_TOKENS_H_
