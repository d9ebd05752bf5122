// Tiles are the unit of parallel work. The number of a node's tiles follows from its estimated time, as far as its
// shape allows. It is a power of two, at most kMaxTiles, so that neighbouring nodes often have equally many.
#include "weft/graph/compile/evaluate.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/base/arena.h"
#include "weft/base/flush_subnormals.h"

namespace weft {

std::vector<Rect> Tiles(const OpDef& op, const OpArgs& args, double tile_seconds) {
  constexpr int64_t kMaxTiles = 64;  // of one node
  const Shape& domain = DomainShape(op, args);
  const int64_t rows = domain.rows(), cols = domain.cols();
  if (op.cut == Cut::kNone || rows * cols == 0) return {{0, rows, 0, cols}};

  const int64_t wanted = std::bit_ceil(
      static_cast<uint64_t>(std::clamp<double>(std::ceil(Seconds(op, args) / tile_seconds), 1, kMaxTiles)));
  const auto [quantum, column_quantum] = QuantaOf(op, args);
  const int64_t row_unit = op.cut == Cut::kCols ? rows : quantum;
  const int64_t col_unit = op.cut == Cut::kRows ? cols : column_quantum;
  const int64_t row_blocks = CeilDiv(rows, row_unit), col_blocks = CeilDiv(cols, col_unit);

  // Rows are split before columns: a tile of whole rows is contiguous, and matrix products are fastest on such tiles.
  int64_t row_parts = 1, col_parts = 1;
  while (row_parts * col_parts < wanted && 2 * row_parts <= row_blocks) row_parts *= 2;
  while (row_parts * col_parts < wanted && 2 * col_parts <= col_blocks) col_parts *= 2;

  std::vector<Rect> tiles;
  for (int64_t i = 0; i < row_parts; ++i) {
    for (int64_t j = 0; j < col_parts; ++j) {
      tiles.push_back(
          {row_blocks * i / row_parts * row_unit, std::min(rows, row_blocks * (i + 1) / row_parts * row_unit),
           col_blocks * j / col_parts * col_unit, std::min(cols, col_blocks * (j + 1) / col_parts * col_unit)});
    }
  }
  return tiles;
}

void Evaluate(const OpDef& op, const Attrs& attrs, absl::Span<const Tensor> inputs, absl::Span<const Tensor> outputs,
              RandomStream random) {
  Types input_types, output_types;
  for (const Tensor& t : inputs) input_types.push_back(t.type);
  for (const Tensor& t : outputs) output_types.push_back(t.type);
  const OpArgs args = {attrs, input_types, output_types};
  const std::vector<Rect> tiles = Tiles(op, args);
  Arena arena;
  const KernelArgs kernel_args = {
      .attrs = attrs,
      .inputs = inputs,
      .outputs = outputs,
      .workspace = op.workspace != nullptr ? arena.Allocate(op.workspace(args, tiles)) : nullptr,
      .random = random};
  const KernelFunction kernel = KernelFor(op, input_types, output_types);
  const FlushSubnormals flush;
  for (const Rect& tile : tiles) kernel(kernel_args, tile);
}

}  // namespace weft
