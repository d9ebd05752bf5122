// These functions measure the matrix products of a training step, each alone and at its best tiling. The sum of their
// times is a lower bound of the step's time.
#ifndef WEFT_BENCH_PRODUCTS_H_
#define WEFT_BENCH_PRODUCTS_H_

#include <cstdint>
#include <vector>

#include "weft/lab/machine/measure.h"
#include "weft/lab/real_graphs.h"
#include "weft/ops/kernels/product/gemm.h"

namespace weft {

struct StepProduct {
  GemmShape shape;
  int64_t count = 1;  // number of occurrences in a step
  double share = 1;   // fraction of the product that is needed; a causal mask needs about half of attention's blocks

  double flops() const {  // of one occurrence
    return 2.0 * static_cast<double>(shape.batch * shape.rows * shape.cols * shape.inner) * share;
  }
};
// Returns the matrix products that `tape` records and, if the model is trained, the two products of the gradient of
// each. Equal products become one entry. All operands have type `precision`.
std::vector<StepProduct> ProductsOf(const Tape& tape, const BenchModel& model, DType precision = kF32);

struct Tiling {
  int64_t batch = 0, rows = 0, cols = 0;  // of a tile
  double seconds = 0;                     // of one product
};
// Measures several tilings briefly, then the best three of them for `seconds` each, and returns the fastest. As in a
// step, each occurrence of the product has its own operands, up to 64 MiB. So operands are in the cache only if the
// step would find them there. A thread that has finished a tile takes the next one.
Tiling BestTiling(Team* team, const StepProduct& product, double seconds);

// Measures AdamW for `seconds` on at most 16 Mi elements. Returns its minimum time, extrapolated to `weights` weights.
double AdamWSeconds(int64_t weights, int threads, double seconds);

}  // namespace weft

#endif  // WEFT_BENCH_PRODUCTS_H_
