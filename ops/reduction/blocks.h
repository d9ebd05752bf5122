// Sums of fixed blocks, of which every reduction is made: the order of the additions depends on shapes only, never on
// tiles or threads. Here an axis of n elements is seen as [outer, n, inner], and `blocks` = ceil(n / block).
#ifndef WEFT_OPS_REDUCTION_BLOCKS_H_
#define WEFT_OPS_REDUCTION_BLOCKS_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "weft/core/op.h"

namespace weft {

inline constexpr int64_t kSumBlock = 64;

struct BlockAttrs {
  int axis = 0;  // counted from the front
  int64_t block = kSumBlock;
  auto Fields() const { return std::tuple{AttrField{"axis", axis}, AttrField{"block", block}}; }
};

constexpr int64_t BlockCount(int64_t n, int64_t block) { return (n + block - 1) / block; }

// [outer, n, inner] → [outer, blocks, inner]: the sum of each block. An empty axis gives one block, of 0.
Var SumBlocks(Var x, int axis, int64_t block = kSumBlock);
// The gradient of that: each element of y again for all that was summed into it, `shape` in all.
Var RepeatBlocks(Var y, const Shape& shape, int axis, int64_t block);

// What a tile of [outer, blocks, inner] reads of [outer, n, inner] = `in`.
Rect BlockAccess(BlockAttrs attrs, const Shape& in, Rect tile);

// For ops whose tiles are rows of output 0, and whose further outputs are sums over blocks of its rows, [blocks, C].
inline int64_t RowSumsQuantum(const OpArgs&) { return kSumBlock; }
Rect RowSumsAccess(const OpArgs& args, int operand, Rect tile);

// For each element of a tile of [outer, blocks, inner], calls along(x, count, y), if the axis is the last, for the
// `count` elements at offset x that are reduced into the one at offset y; if not, for each row of the tile, across(x,
// stride, count, y, n): n elements at y, each reduced from `count` that are `stride` apart.
template <class Along, class Across>
void ForEachBlock(BlockAttrs attrs, const Shape& in, Rect tile, Along along, Across across) {
  const int64_t n = in.dim(attrs.axis), block = attrs.block, blocks = std::max<int64_t>(1, BlockCount(n, block));
  const bool last = attrs.axis == in.rank() - 1;
  const int64_t cols = last ? blocks : in.cols();
  const int64_t inner = last ? 1 : in.Product(attrs.axis + 1, in.rank() - 1);  // rows between neighbours on the axis
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row) {
    if (last) {
      for (int64_t j = tile.col_begin; j < tile.col_end; ++j) {
        along(row * n + j * block, std::min(block, n - j * block), row * cols + j);
      }
      continue;
    }
    const int64_t i = row % inner, j = row / inner % blocks, o = row / inner / blocks;
    across(((o * n + j * block) * inner + i) * cols + tile.col_begin, inner * cols, std::min(block, n - j * block),
           row * cols + tile.col_begin, tile.cols());
  }
}

// The length of the parts that a power of two of equal ones cut `size` into: at least `least`, a multiple of `unit`.
inline int64_t EqualParts(int64_t size, int64_t least, int64_t unit) {
  const int64_t parts = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, size / least))));
  return std::max<int64_t>(unit, (size + parts * unit - 1) / (parts * unit) * unit);
}

// Tiles of a product have so many rows that what is done once for B is amortised, and so many columns that reading A
// is.
inline int64_t ProductRows(int64_t rows, int64_t least = 128) { return EqualParts(rows, least, 32); }
inline int64_t ProductColumns(int64_t cols, int64_t least = 256) { return EqualParts(cols, least, 64); }

}  // namespace weft

#endif  // WEFT_OPS_REDUCTION_BLOCKS_H_
