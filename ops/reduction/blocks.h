// SumBlocks adds the elements of each fixed block along an axis. Sum (reductions.cc) applies SumBlocks to these sums
// again, until one is left. The order of additions depends on shapes and the CPU only, never on tiles or threads.
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
