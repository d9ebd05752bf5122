// Kernels on contiguous arrays, vectorised with Highway: one build has code for several instruction sets and runs the
// best that the CPU supports. They allocate nothing. bf16 is computed in f32 and rounded once, to nearest even.
//
// The bits of an element of an elementwise kernel depend only on its operands, not on its index, and so not on where a
// tile begins. The order of a reduction's additions depends only on the number of elements and the CPU.
//
//   Maps<float>().unary(UnaryFunction::kExp, x, y, n);             // y[i] = exp(x[i])
//   Maps<float>().binary(BinaryFunction::kMul, a, 1, b, 0, y, n);  // y[i] = a[i] * b[0]
//   Selects<float>().compare(Comparison::kLess, x, 1, &limit, 0, mask, n);  // mask[i] = x[i] < limit
//   Selects<float>().select(mask, x, 1, &limit, 0, y, n);                   // y[i] = mask[i] ? x[i] : limit
//   Rows<float>().softmax(x, y, n);
#ifndef WEFT_OPS_KERNELS_ROWS_ROWS_H_
#define WEFT_OPS_KERNELS_ROWS_ROWS_H_

#include <cstdint>
#include <tuple>

#include "weft/core/dtype.h"
#include "weft/core/random.h"

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

// y may be an input, except an i32 input of stride 0. For i32, only `binary` is set.
template <class T>
struct MapKernels {
  // y[i] = f(x[i]) for i < n. Special values are those of <cmath>: exp(-inf) = 0, log(0) = -inf, NaN stays NaN.
  void (*unary)(UnaryFunction f, const T* x, T* y, int64_t n) = nullptr;
  // y[i] = f(a[i * a_stride], b[i * b_stride]) for i < n, where strides are 0 or 1. For i32, `f` is one of the first
  // six functions. Results wrap around at 32 bits. Quotients are truncated; x / 0 is 0.
  void (*binary)(BinaryFunction f, const T* a, int a_stride, const T* b, int b_stride, T* y, int64_t n);
  void (*scale)(const T* x, Computed<T> factor, T* y, int64_t n) = nullptr;  // y[i] = factor * x[i]
  // Convert from and to f32. Narrowing rounds to nearest even. The pointers are null unless T is BF16.
  void (*narrow)(const float* x, T* y, int64_t n) = nullptr;
  void (*widen)(const T* x, float* y, int64_t n) = nullptr;
};

using MapTables = std::tuple<MapKernels<float>, MapKernels<double>, MapKernels<BF16>, MapKernels<int32_t>>;
const MapTables& AllMaps();  // for this CPU
template <class T>
const MapKernels<T>& Maps() {
  return std::get<MapKernels<T>>(AllMaps());
}

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
  // y[i] = x[i] · (1 / (1 - rate)) if random.Uniform(first + i) >= rate, else 0. `rate` is in [0, 1). y may be x. The
  // pointer is null if T is int32_t or bool.
  void (*drop)(const RandomStream& random, uint64_t first, double rate, const T* x, T* y, int64_t n) = nullptr;
};

using SelectTables = std::tuple<SelectKernels<float>, SelectKernels<double>, SelectKernels<BF16>,
                                SelectKernels<int32_t>, SelectKernels<bool>>;
const SelectTables& AllSelects();  // for this CPU
template <class T>
const SelectKernels<T>& Selects() {
  return std::get<SelectKernels<T>>(AllSelects());
}

template <class T>
struct ShiftedLogSum {  // log Σ exp(x_i) = shift + log_sum; not added, since that would round
  T shift = 0, log_sum = 0;
};

template <class T>
struct AdamWStep {
  T keep;  // 1 - rate · decay
  T grad_scale;
  T gain1, beta2, gain2;      // 1 - β1, β2, 1 - β2
  T step_size;                // rate / (1 - β1^step)
  T inverse_root_correction;  // 1 / sqrt(1 - β2^step)
  T epsilon;
};

template <class T>
struct SgdStep {
  T grad_scale, weight_decay, momentum, rate;
  bool nesterov;
};

// An output row may be in the memory of an input row of the same type. For BF16, only sum, sum_rows, norm and
// norm_gradient are set; their sums, statistics, gains and biases are f32.
template <class T>
struct RowKernels {
  using C = Computed<T>;

  C (*sum)(const T* x, int64_t n);
  T (*square_sum)(const T* x, int64_t n);
  T (*max)(const T* x, int64_t n);  // n >= 1; NaN if an element is NaN
  // sum_rows: y[i] = x[i] + x[stride + i] + ... over `rows` rows. max_rows: the maximum instead of the sum; rows >= 1.
  void (*sum_rows)(const T* x, int64_t stride, int64_t rows, C* y, int64_t n);
  void (*max_rows)(const T* x, int64_t stride, int64_t rows, T* y, int64_t n);
  void (*add_to)(const T* x, T* y, int64_t n);  // y += x

  void (*softmax)(const T* x, T* y, int64_t n);  // a row of only -inf gives zeros
  ShiftedLogSum<T> (*log_sum_exp)(const T* x, int64_t n);
  void (*subtract)(const T* x, T a, T b, T* y, int64_t n);  // y = (x - a) - b
  // y = (exp(x - lse) - q) · d
  void (*exp_difference)(const T* x, T lse, T q, T d, T* y, int64_t n);

  // Computes y, `mean` and `rstd` of one row by layer norm. If `bias` is null, computes y and `rstd` by RMS norm.
  void (*norm)(const T* x, const C* gain, const C* bias, C epsilon, T* y, C* mean, C* rstd, int64_t n);
  // Computes dx of one row, and adds the row's terms to dgain and dbias. If `dbias` is null, the norm is RMS norm, and
  // `mean` is unused.
  void (*norm_gradient)(const T* x, const C* gain, C mean, C rstd, const T* dy, T* dx, C* dgain, C* dbias, int64_t n);

  // The next version of w, m or v may be in the memory of the old version.
  void (*adamw)(const AdamWStep<T>& step, const T* w, const T* m, const T* v, const T* grad, T* next_w, T* next_m,
                T* next_v, int64_t n);
  void (*sgd)(const SgdStep<T>& step, const T* w, const T* m, const T* grad, T* next_w, T* next_m, int64_t n);
};

using RowTables = std::tuple<RowKernels<float>, RowKernels<double>, RowKernels<BF16>>;
const RowTables& AllRows();  // for this CPU
template <class T>
const RowKernels<T>& Rows() {
  return std::get<RowKernels<T>>(AllRows());
}

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ROWS_ROWS_H_
