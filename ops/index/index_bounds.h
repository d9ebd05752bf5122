// Checks while recording that the declared bounds of an integer Input fit the rows that it indexes. Each call of Run
// then checks the fed values.
#ifndef WEFT_OPS_INDEX_INDEX_BOUNDS_H_
#define WEFT_OPS_INDEX_INDEX_BOUNDS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "weft/core/tape.h"

namespace weft {

// If `indices` is an Input, fails its tape unless the input's bounds lie in 0 .. `count` - 1 and its `ignored` value,
// if it declares one, is `ignored`. Each call of Run then checks the fed values against the bounds. An input without
// elements needs no bounds. `counted` names the indexed things in the error: "rows of the table".
void RequireBounds(const char* op, Var indices, int64_t count, absl::string_view counted,
                   std::optional<int64_t> ignored = std::nullopt);

}  // namespace weft

#endif  // WEFT_OPS_INDEX_INDEX_BOUNDS_H_
