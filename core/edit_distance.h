// EditDistance compares two words by their letters, so that an error about an unknown word can suggest a known one.
//
//   EditDistance("widht", "width");  // 1
#ifndef WEFT_CORE_EDIT_DISTANCE_H_
#define WEFT_CORE_EDIT_DISTANCE_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace weft {

// Returns the minimum number of bytes to insert, remove or replace, and of neighbours to swap, that makes `b` from `a`.
// No byte takes part in two edits (optimal string alignment). The time grows with the product of the lengths.
size_t EditDistance(absl::string_view a, absl::string_view b);

}  // namespace weft

#endif  // WEFT_CORE_EDIT_DISTANCE_H_
