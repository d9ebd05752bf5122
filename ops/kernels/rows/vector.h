// Map applies a function to each element of contiguous arrays. Functions of floats are vectorised with Highway: one
// build has code for several instruction sets and runs the best that the CPU supports.
//
// The output y may be the same array as an input, except an i32 input of stride 0. The bits of an element depend only
// on its operands, not on its index. Special values are those of <cmath>: exp(-inf) = 0, log(0) = -inf, NaN stays NaN.
// bf16 is computed in f32 and rounded once, to nearest even.
//
//   Map(UnaryFunction::kExp, x, y, n);            // y[i] = exp(x[i])
//   Map(BinaryFunction::kMul, a, 1, b, 0, y, n);  // y[i] = a[i] * b[0]
#ifndef WEFT_OPS_KERNELS_ROWS_VECTOR_H_
#define WEFT_OPS_KERNELS_ROWS_VECTOR_H_

#include <cstdint>

#include "weft/core/dtype.h"

namespace weft {

enum class UnaryFunction : uint8_t {
  kExp,
  kLog,
  kSqrt,
  kTanh,
  kErf,
  kRelu,      // max(x, 0)
  kSigmoid,   // 1 / (1 + exp(-x))
  kSoftplus,  // log(1 + exp(x))
  kAbs,
  kGeluErf,   // x · Φ(x)
  kGeluTanh,  // the approximation of kGeluErf by tanh
};

enum class BinaryFunction : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMinimum,  // NaN if an input is NaN; a if both are equal
  kMaximum,
  kGeluErfGradient,  // b · d gelu(a) / da
  kGeluTanhGradient,
};

// y[i] = f(x[i]) for i < n. Here and below, T is float, double or BF16.
template <class T>
void Map(UnaryFunction f, const T* x, T* y, int64_t n);

// y[i] = f(a[i * a_stride], b[i * b_stride]) for i < n, where strides are 0 or 1.
template <class T>
void Map(BinaryFunction f, const T* a, int a_stride, const T* b, int b_stride, T* y, int64_t n);
// For i32, `f` is one of the first six functions. Results wrap around at 32 bits. Quotients are truncated; x / 0 is 0.
void Map(BinaryFunction f, const int32_t* a, int a_stride, const int32_t* b, int b_stride, int32_t* y, int64_t n);

// y[i] = factor * x[i].
template <class T>
void Scale(const T* x, Computed<T> factor, T* y, int64_t n);

// Computes y[i] = x[i]. Narrowing rounds to nearest even.
void Convert(const float* x, BF16* y, int64_t n);
void Convert(const BF16* x, float* y, int64_t n);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ROWS_VECTOR_H_
