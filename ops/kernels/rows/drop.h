// Drop applies dropout to an array, vectorised with Highway. It draws random numbers as needed, and stores few of them.
#ifndef WEFT_OPS_KERNELS_ROWS_DROP_H_
#define WEFT_OPS_KERNELS_ROWS_DROP_H_

#include <cstdint>

#include "weft/core/dtype.h"
#include "weft/core/random.h"

namespace weft {

// y[i] = x[i] · (1 / (1 - rate)) if random.Uniform(first + i) >= rate, else 0. `rate` is in [0, 1). y may be x. T is
// float, double or BF16.
template <class T>
void Drop(const RandomStream& random, uint64_t first, double rate, const T* x, T* y, int64_t n);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ROWS_DROP_H_
