// RequireBounds checks, while recording, that an integer Input declares bounds within the rows that its values index.
// Each call of Run then checks the fed values against these bounds.
#ifndef WEFT_OPS_INDEX_INDEX_BOUNDS_H_
#define WEFT_OPS_INDEX_INDEX_BOUNDS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "weft/core/tape.h"

namespace weft {

// If `indices` is an Input, its InputBounds must have 0 < below <= `count`, and declare either no ignored value or
// `ignored`. Otherwise records an error on the tape. Indices that the graph computes, and inputs without elements, are
// not checked. `counted` names the indexed things in the error: "rows of the table".
void RequireBounds(const char* op, Var indices, int64_t count, absl::string_view counted,
                   std::optional<int64_t> ignored = std::nullopt);

}  // namespace weft

#endif  // WEFT_OPS_INDEX_INDEX_BOUNDS_H_
