#include "weft/core/status.h"
#include "weft/graph/passes/passes.h"

namespace weft {

// The raising passes, in order: each sees what those before it recorded.
absl::Status Raise(Rewrite& rewrite) {
  WEFT_RETURN_IF_ERROR(RaiseAttention(rewrite));
  WEFT_RETURN_IF_ERROR(RaiseNorms(rewrite));
  return RaiseLinearCrossEntropy(rewrite);
}

}  // namespace weft
