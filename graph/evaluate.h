// Tiles cuts one node into tiles. Evaluate runs one node on tensors, serially, for constant folding and for tests.
//
//   Evaluate(kExp, {}, {x}, {y});  // y = exp(x)
#ifndef WEFT_GRAPH_EVALUATE_H_
#define WEFT_GRAPH_EVALUATE_H_

#include "absl/types/span.h"
#include "weft/core/op.h"
#include "weft/graph/cost.h"

namespace weft {

// Unless an op has its own quantum, its tiles begin at multiples of 64 columns: at least one cache line of any dtype.
inline constexpr int64_t kColumnQuantum = 64;

// Returns the tiles of a node, which depend on the op, its attributes and its types only. `tile_seconds`:
// target duration of a tile, by the cost model.
std::vector<Rect> Tiles(const OpDef& op, const OpArgs& args, double tile_seconds = kTileSeconds);

// Runs every tile of `op` in order. The caller must have allocated the bytes of `outputs`, which are written.
void Evaluate(const OpDef& op, const Attrs& attrs, absl::Span<const Tensor> inputs, absl::Span<const Tensor> outputs,
              RandomStream random = {});

}  // namespace weft

#endif  // WEFT_GRAPH_EVALUATE_H_
