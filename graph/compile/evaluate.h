// Tiles cuts one node into tiles. Evaluate runs one node on tensors, serially, for constant folding and for tests.
//
//   Evaluate(kExp, {}, {x}, {y});  // y = exp(x)
#ifndef WEFT_GRAPH_COMPILE_EVALUATE_H_
#define WEFT_GRAPH_COMPILE_EVALUATE_H_

#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "weft/core/op.h"
#include "weft/graph/compile/cost.h"

namespace weft {

// Unless OpDef::column_quantum is set, tiles begin at multiples of 64 columns: at least one cache line of any dtype.
inline constexpr int64_t kColumnQuantum = 64;
// Returns the rows and the columns at whose multiples the tiles of an op begin.
inline std::pair<int64_t, int64_t> QuantaOf(const OpDef& op, const OpArgs& args) {
  return {op.quantum != nullptr ? op.quantum(args) : 1,
          op.column_quantum != nullptr ? op.column_quantum(args) : kColumnQuantum};
}
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns the tiles of a node. They depend only on the op, its attributes and types, and `tile_seconds`: the target
// duration of a tile, in seconds by the cost model.
std::vector<Rect> Tiles(const OpDef& op, const OpArgs& args, double tile_seconds = kTileSeconds);

// Runs `op` on `inputs`, one tile after the other, and writes the results to `outputs`. The caller must have allocated
// the bytes of the outputs.
void Evaluate(const OpDef& op, const Attrs& attrs, absl::Span<const Tensor> inputs, absl::Span<const Tensor> outputs,
              RandomStream random = {});

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_EVALUATE_H_
