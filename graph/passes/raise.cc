#include "weft/graph/passes/passes.h"

namespace weft {

// The raising passes, in order: each sees what those before it recorded.
absl::Status Raise(Rewrite& rewrite) { return RaiseAttention(rewrite); }

}  // namespace weft
