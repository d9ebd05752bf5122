// SumBlocks adds fixed blocks of an axis. Sum (reductions.cc) records it again for the sums of the blocks, until one is
// left. The order of additions depends on shapes only, never on tiles or threads.
#ifndef WEFT_OPS_REDUCTION_BLOCKS_H_
#define WEFT_OPS_REDUCTION_BLOCKS_H_

#include <cstdint>
#include <tuple>

#include "weft/core/op.h"

namespace weft {

inline constexpr int64_t kSumBlock = 64;

struct BlockAttrs {
  int axis = 0;  // from the front
  int64_t block = kSumBlock;
  auto Fields() const { return std::tuple{AttrField{"axis", axis}, AttrField{"block", block}}; }
};

constexpr int64_t BlockCount(int64_t n, int64_t block) { return (n + block - 1) / block; }

// Returns the sum of each block of an axis of n elements, [outer, n, inner] → [outer, blocks, inner], where `blocks` is
// ceil(n / block). An empty axis gives one block, whose sum is 0.
Var SumBlocks(Var x, int axis, int64_t block = kSumBlock);

}  // namespace weft

#endif  // WEFT_OPS_REDUCTION_BLOCKS_H_
