// Comparison of numbers, and selection by bools, on contiguous arrays, vectorised for the running CPU.
//
//   Selects<float>().compare(Comparison::kLess, x, 1, &limit, 0, mask, n);  // mask[i] = x[i] < limit
//   Selects<float>().select(mask, x, 1, &limit, 0, y, n);                   // y[i] = mask[i] ? x[i] : limit
#ifndef WEFT_OPS_KERNELS_SELECT_H_
#define WEFT_OPS_KERNELS_SELECT_H_

#include <cstdint>

#include "weft/core/dtype.h"

namespace weft {

enum class Comparison : uint8_t { kEqual, kLess, kLessEqual };

template <class T>
struct SelectKernels {
  // y[i] = a[i * a_step] compared with b[i * b_step], for i < n and steps 0 or 1; false if one is NaN. Null for bools.
  void (*compare)(Comparison c, const T* a, int a_step, const T* b, int b_step, bool* y, int64_t n) = nullptr;
  // y[i] = mask[i] ? a[i * a_step] : b[i * b_step], bit for bit. y may be the mask, or an operand whose step is 1.
  void (*select)(const bool* mask, const T* a, int a_step, const T* b, int b_step, T* y, int64_t n);
};

// Defined for float, double, BF16, int32_t and bool.
template <class T>
const SelectKernels<T>& Selects();

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_SELECT_H_
