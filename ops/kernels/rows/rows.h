// Row kernels work on rows of contiguous floats, vectorised for the running CPU.
//
// The order of a reduction's additions depends only on the number of elements and the CPU. An elementwise kernel gives
// an element the same bits wherever a tile begins. The kernels allocate nothing.
//
//   const RowKernels<float>& rows = Rows<float>();
//   rows.softmax(x, y, n);
#ifndef WEFT_OPS_KERNELS_ROWS_ROWS_H_
#define WEFT_OPS_KERNELS_ROWS_ROWS_H_

#include <cstdint>

#include "weft/core/op.h"

namespace weft {

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

// Defined for float, double and BF16.
template <class T>
const RowKernels<T>& Rows();

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ROWS_ROWS_H_
