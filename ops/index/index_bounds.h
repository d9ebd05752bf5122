// What ops that look rows up ask of an input of indices that is fed to them directly.
#ifndef WEFT_OPS_INDEX_INDEX_BOUNDS_H_
#define WEFT_OPS_INDEX_INDEX_BOUNDS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "weft/core/tape.h"

namespace weft {

// If `indices` is an Input, fails its tape unless the input's bounds allow 0 .. count - 1 only, and `ignored` where
// there is one. An input without elements needs none. Runs then find whatever else is fed. `what` names the things that
// are counted: "rows of the table".
void RequireBounds(const char* op, Var indices, int64_t count, absl::string_view what,
                   std::optional<int64_t> ignored = std::nullopt);

}  // namespace weft

#endif  // WEFT_OPS_INDEX_INDEX_BOUNDS_H_
