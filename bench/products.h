// The matrix products of a training step by themselves: what they take at their best, whatever is around them.
#ifndef WEFT_BENCH_PRODUCTS_H_
#define WEFT_BENCH_PRODUCTS_H_

#include <cstdint>
#include <vector>

#include "weft/lab/models.h"
#include "weft/lab/team.h"
#include "weft/ops/kernels/gemm.h"

namespace weft {

struct StepProduct {
  GemmShape shape;
  int64_t count = 1;  // in a step
  double share = 1;   // of its flops that count: what a causal mask leaves of attention's, in blocks of 64

  double flops() const {  // of one
    return 2.0 * static_cast<double>(shape.batch * shape.rows * shape.cols * shape.inner) * share;
  }
};
// Those recorded on the tape, and where the model is trained the two of each one's gradient; f32, or bf16 throughout.
std::vector<StepProduct> ProductsOf(const Tape& tape, const BenchModel& model, DType precision = kF32);

struct Tiling {
  int64_t batch = 0, rows = 0, cols = 0;  // of a tile
  double seconds = 0;                     // of one product
};
// Tries a handful of tilings, the best three of them for `seconds` each, with operands that are not in the cache if
// those of a step's products like it would not be. Threads take the next tile when they have done one.
Tiling BestTiling(Team* team, const StepProduct& product, double seconds);

// What AdamW takes for so many weights, on so many threads: at its best, with arrays of at most 16M elements.
double AdamWSeconds(int64_t weights, int threads, double seconds);

}  // namespace weft

#endif  // WEFT_BENCH_PRODUCTS_H_
