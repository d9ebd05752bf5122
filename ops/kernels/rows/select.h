// Selects<T>() has kernels that compare numbers, that select numbers by bools, and that search for a number. They work
// on contiguous arrays and are vectorised for the running CPU.
//
//   Selects<float>().compare(Comparison::kLess, x, 1, &limit, 0, mask, n);  // mask[i] = x[i] < limit
//   Selects<float>().select(mask, x, 1, &limit, 0, y, n);                   // y[i] = mask[i] ? x[i] : limit
#ifndef WEFT_OPS_KERNELS_ROWS_SELECT_H_
#define WEFT_OPS_KERNELS_ROWS_SELECT_H_

#include <cstdint>

#include "weft/core/dtype.h"

namespace weft {

enum class Comparison : uint8_t { kEqual, kLess, kLessEqual };

template <class T>
struct SelectKernels {
  // Compares a[i * a_stride] with b[i * b_stride] by `c` for i < n, and sets y[i] to the result. The result is false if
  // either number is NaN. Strides are 0 or 1. The pointer is null if T is bool.
  void (*compare)(Comparison c, const T* a, int a_stride, const T* b, int b_stride, bool* y, int64_t n) = nullptr;
  // Computes y[i] = mask[i] ? a[i * a_stride] : b[i * b_stride], without changing bits. y may be an operand of stride 1
  // or, if T is bool, the mask.
  void (*select)(const bool* mask, const T* a, int a_stride, const T* b, int b_stride, T* y, int64_t n);
  // Returns the first i with begin <= i < n for which x[i] <= limit is false, or n. The pointer is null if T is BF16 or
  // bool.
  int64_t (*first_above)(const T* x, int64_t begin, int64_t n, T limit) = nullptr;
};

// Defined for float, double, BF16, int32_t and bool.
template <class T>
const SelectKernels<T>& Selects();

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ROWS_SELECT_H_
