// Drop applies dropout to an array, vectorised with Highway. It draws random numbers as needed, and stores few of them.
#ifndef WEFT_OPS_KERNELS_DROP_H_
#define WEFT_OPS_KERNELS_DROP_H_

#include <cstdint>

#include "weft/core/dtype.h"
#include "weft/core/random.h"

namespace weft {

// y[i] = x[i] · (1 / (1 - rate)) if random.Uniform(first + i) >= rate, else 0. `rate` is in [0, 1). y may be x.
void Drop(const RandomStream& random, uint64_t first, double rate, const float* x, float* y, int64_t n);
void Drop(const RandomStream& random, uint64_t first, double rate, const double* x, double* y, int64_t n);
void Drop(const RandomStream& random, uint64_t first, double rate, const BF16* x, BF16* y, int64_t n);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_DROP_H_
