// EditDistance compares two words by their letters, so that an error about an unknown word can suggest a known one.
//
//   EditDistance("widht", "width");                       // 1
//   NearestWord("widht", {"height", "width"}, 2);         // 1, the position of "width"
#ifndef WEFT_BASE_EDIT_DISTANCE_H_
#define WEFT_BASE_EDIT_DISTANCE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Returns the minimum number of bytes to insert, remove or replace, and of neighbours to swap, that makes `b` from `a`.
// No byte takes part in two edits (optimal string alignment). The time grows with the product of the lengths.
size_t EditDistance(absl::string_view a, absl::string_view b);

// Returns the position in `known` of the first word with the smallest distance from `word`, or known.size() if all
// words take more than `limit` edits. If `word` has at least 3 bytes and is the beginning of a known word, that counts
// as one edit. Words of more than 200 bytes are near to none.
size_t NearestWord(absl::string_view word, absl::Span<const std::string> known, size_t limit);

}  // namespace weft

#endif  // WEFT_BASE_EDIT_DISTANCE_H_
