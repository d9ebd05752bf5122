// Runs one node on tensors, serially: for constant folding and for tests.
#ifndef WEFT_GRAPH_EVALUATE_H_
#define WEFT_GRAPH_EVALUATE_H_

#include "absl/types/span.h"
#include "weft/core/op.h"
#include "weft/graph/cost.h"

namespace weft {

inline constexpr int64_t kColumnQuantum = 64;  // of ops that name none: a cache line or more of any dtype

// The tiles of a node: they depend on the op, its attributes and its types only.
std::vector<Rect> Tiles(const OpDef& op, const OpArgs& args, double tile_seconds = kTileSeconds);

// Runs every tile of `op`, in order. The outputs' bytes are the caller's.
void Evaluate(const OpDef& op, const Attrs& attrs, absl::Span<const Tensor> inputs, absl::Span<const Tensor> outputs,
              RandomStream random = {});

}  // namespace weft

#endif  // WEFT_GRAPH_EVALUATE_H_
