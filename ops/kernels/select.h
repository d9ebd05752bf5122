// Selects compare numbers and select by bools, on contiguous arrays, vectorised for the running CPU.
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
  // For i < n and strides 0 or 1: y[i] = a[i * a_stride] compared with b[i * b_stride]; false if one is NaN. Null for
  // bools.
  void (*compare)(Comparison c, const T* a, int a_stride, const T* b, int b_stride, bool* y, int64_t n) = nullptr;
  // y[i] = mask[i] ? a[i * a_stride] : b[i * b_stride], bit for bit. y may be the mask, or an operand of
  // stride 1.
  void (*select)(const bool* mask, const T* a, int a_stride, const T* b, int b_stride, T* y, int64_t n);
};

// Defined for float, double, BF16, int32_t and bool.
template <class T>
const SelectKernels<T>& Selects();

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_SELECT_H_
