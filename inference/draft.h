// DraftByLookup guesses the next tokens of a text, so that a generator can check several of them in one execution
// (Leviathan et al., "Fast inference from Transformers via speculative decoding", 2023). It looks up where the text's
// last tokens occurred before, as prompt look-up decoding does (Saxena, 2023). This pays off for texts that repeat
// names and phrases.
#ifndef WEFT_INFERENCE_DRAFT_H_
#define WEFT_INFERENCE_DRAFT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// Returns up to `count` tokens that followed the latest earlier occurrence of the last three tokens of `text`. If these
// did not occur, looks up the last two. Returns no tokens if these did not occur either.
std::vector<int32_t> DraftByLookup(absl::Span<const int32_t> text, size_t count);

}  // namespace weft

#endif  // WEFT_INFERENCE_DRAFT_H_
