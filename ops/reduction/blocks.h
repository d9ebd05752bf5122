// SumBlocks adds fixed blocks of an axis. Sum (reductions.cc) records it again for the sums of the blocks, until one is
// left. This file also declares the block and tile sizes of other ops that add in blocks.
//
// The order of additions depends on shapes only, never on tiles or threads. Below, an axis of n elements is seen as
// [outer, n, inner], and `blocks` = ceil(n / block).
#ifndef WEFT_OPS_REDUCTION_BLOCKS_H_
#define WEFT_OPS_REDUCTION_BLOCKS_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "weft/core/op.h"

namespace weft {

inline constexpr int64_t kSumBlock = 64;

struct BlockAttrs {
  int axis = 0;  // from the front
  int64_t block = kSumBlock;
  auto Fields() const { return std::tuple{AttrField{"axis", axis}, AttrField{"block", block}}; }
};

constexpr int64_t BlockCount(int64_t n, int64_t block) { return (n + block - 1) / block; }

// Returns the sum of each block, [outer, n, inner] → [outer, blocks, inner]. An empty axis gives one block, whose sum
// is 0.
Var SumBlocks(Var x, int axis, int64_t block = kSumBlock);
// The gradient of SumBlocks: repeats each element of y for all elements of its block. Returns `shape`.
Var RepeatBlocks(Var y, const Shape& shape, int axis, int64_t block);

// Returns the rectangle of `in` [outer, n, inner] that a tile of [outer, blocks, inner] reads.
Rect BlockAccess(BlockAttrs attrs, const Shape& in, Rect tile);

// Quantum and access of ops whose tiles are rows of output 0, with further outputs [blocks, C]: sums over blocks of
// rows.
inline int64_t RowSumsQuantum(const OpArgs&) { return kSumBlock; }
Rect RowSumsAccess(const OpArgs& args, int operand, Rect tile);

// Visits the blocks of a tile of [outer, blocks, inner]; x and y are offsets. If the axis is the last, calls along(x,
// count, y) for each element of the tile: the `count` elements at x are reduced to the one at y. Otherwise calls
// across(x, stride, count, y, n) for each row of the tile: n elements at y are reduced from `count` rows at x, `stride`
// apart.
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

// Cuts `size` into a power of two of about equal parts and returns their length: at least `minimum`, a multiple of
// `unit`.
inline int64_t EqualParts(int64_t size, int64_t minimum, int64_t unit) {
  const int64_t parts =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, size / minimum))));
  return std::max<int64_t>(unit, (size + parts * unit - 1) / (parts * unit) * unit);
}

// Rows and columns of a product's tiles: enough rows to amortise the work done once for B, and enough columns to
// amortise reading A.
inline int64_t ProductRows(int64_t rows, int64_t minimum = 128) { return EqualParts(rows, minimum, 32); }
inline int64_t ProductColumns(int64_t cols, int64_t minimum = 256) { return EqualParts(cols, minimum, 64); }

}  // namespace weft

#endif  // WEFT_OPS_REDUCTION_BLOCKS_H_
