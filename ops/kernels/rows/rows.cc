#include "weft/ops/kernels/rows/rows.h"

#include <cmath>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/rows/rows.cc"
#include "hwy/foreach_target.h"
// These includes follow foreach_target.h, which includes this file once for each instruction set.
#include "hwy/highway.h"
#include "weft/ops/kernels/exp-inl.h"
#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

// Returns the sum of f(access, i) over all elements.
template <class T, class F>
HWY_INLINE Computed<T> SumVectors(int64_t n, F f) {
  const D<T> d;
  const int64_t lanes = hn::Lanes(d);
  const Full full;
  V<T> s[] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};  // four sums hide the latency of additions
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    HWY_UNROLL(4)
    for (int k = 0; k < 4; ++k) s[k] = hn::Add(s[k], f(full, i + k * lanes));
  }
  for (; i + lanes <= n; i += lanes) s[0] = hn::Add(s[0], f(full, i));
  if (i < n) {
    const Partial tail = {static_cast<size_t>(n - i)};
    s[1] = hn::Add(s[1], hn::IfThenElseZero(hn::FirstN(d, tail.n), f(tail, i)));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3]))));
}

// Returns the larger number, or NaN if either is NaN.
template <class T>
HWY_INLINE V<T> Larger(V<T> a, V<T> b) {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, hn::Max(a, b)));
}

template <class T>
Computed<T> Sum(const T* x, int64_t n) {
  return SumVectors<T>(n, [&](auto at, int64_t i) HWY_ATTR { return at.Load(x + i); });
}

template <class T>
T SquareSum(const T* x, int64_t n) {
  return SumVectors<T>(n, [&](auto at, int64_t i) HWY_ATTR {
    const V<T> v = at.Load(x + i);
    return hn::Mul(v, v);
  });
}

template <class T>
T Max(const T* x, int64_t n) {
  const D<T> d;
  V<T> largest = hn::Set(d, x[0]);
  auto nan = hn::IsNaN(largest);
  ForEachVector<T>(n, [&](auto at, int64_t i) HWY_ATTR {
    V<T> v = at.Load(x + i);
    if constexpr (std::is_same_v<decltype(at), Partial>) v = hn::IfThenElse(hn::FirstN(d, at.n), v, hn::Set(d, x[0]));
    nan = hn::Or(nan, hn::IsNaN(v));
    largest = hn::Max(largest, v);
  });
  return hn::AllFalse(d, nan) ? hn::GetLane(hn::MaxOfLanes(d, largest)) : std::numeric_limits<T>::quiet_NaN();
}

template <class T>
void SumRows(const T* x, int64_t stride, int64_t rows, Computed<T>* y, int64_t n) {
  const D<T> d;
  const int64_t lanes = hn::Lanes(d);
  const Full full;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    V<T> s[] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};  // as in SumVectors
    for (int64_t r = 0; r < rows; ++r) {
      HWY_UNROLL(4)
      for (int k = 0; k < 4; ++k) s[k] = hn::Add(s[k], full.Load(x + r * stride + i + k * lanes));
    }
    HWY_UNROLL(4)
    for (int k = 0; k < 4; ++k) full.Store(s[k], y + i + k * lanes);
  }
  ForEachVector<T>(n - i, [&](auto at, int64_t j) HWY_ATTR {
    V<T> s = hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) s = hn::Add(s, at.Load(x + r * stride + i + j));
    at.Store(s, y + i + j);
  });
}

template <class T>
void MaxRows(const T* x, int64_t stride, int64_t rows, T* y, int64_t n) {
  ForEachVector<T>(n, [&](auto at, int64_t i) HWY_ATTR {
    V<T> largest = at.Load(x + i);
    for (int64_t r = 1; r < rows; ++r) largest = Larger<T>(largest, at.Load(x + r * stride + i));
    at.Store(largest, y + i);
  });
}

template <class T>
void AddTo(const T* x, T* y, int64_t n) {
  ForEachVector<T>(n, [&](auto at, int64_t i) HWY_ATTR { at.Store(hn::Add(at.Load(y + i), at.Load(x + i)), y + i); });
}

template <class T>
void Softmax(const T* x, T* y, int64_t n) {
  if (n == 0) return;
  const D<T> d;
  const T max = Max(x, n);
  if (max == -std::numeric_limits<T>::infinity()) {
    for (int64_t i = 0; i < n; ++i) y[i] = 0;
    return;
  }
  const V<T> shift = hn::Set(d, max);
  const T sum = SumVectors<T>(n, [&](auto at, int64_t i) HWY_ATTR {
    const V<T> e = Exp<T>(hn::Sub(at.Load(x + i), shift));
    at.Store(e, y + i);
    return e;
  });
  const V<T> scale = hn::Set(d, 1 / sum);
  ForEachVector<T>(n, [&](auto at, int64_t i) HWY_ATTR { at.Store(hn::Mul(at.Load(y + i), scale), y + i); });
}

template <class T>
ShiftedLogSum<T> LogSumExpOf(const T* x, int64_t n) {
  if (n == 0) return {0, -std::numeric_limits<T>::infinity()};
  T shift = Max(x, n);
  if (shift == -std::numeric_limits<T>::infinity()) shift = 0;
  const V<T> shifts = hn::Set(D<T>(), shift);
  const T sum = SumVectors<T>(n, [&](auto at, int64_t i) HWY_ATTR { return Exp<T>(hn::Sub(at.Load(x + i), shifts)); });
  return {shift, std::log(sum)};
}

template <class T>
void Subtract(const T* x, T a, T b, T* y, int64_t n) {
  const V<T> first = hn::Set(D<T>(), a), second = hn::Set(D<T>(), b);
  ForEachVector<T>(
      n, [&](auto at, int64_t i) HWY_ATTR { at.Store(hn::Sub(hn::Sub(at.Load(x + i), first), second), y + i); });
}

template <class T>
void ExpDifference(const T* x, T lse, T q, T d, T* y, int64_t n) {
  const D<T> tag;
  const V<T> shift = hn::Set(tag, lse), less = hn::Set(tag, q), scale = hn::Set(tag, d);
  ForEachVector<T>(n, [&](auto at, int64_t i) HWY_ATTR {
    const V<T> p = Exp<T>(hn::Sub(at.Load(x + i), shift));
    at.Store(hn::Mul(hn::Sub(p, less), scale), y + i);
  });
}

// Computes layer norm of x, whose mean is `mean`. If not `centred`, computes RMS norm, and ignores `mean` and `bias`.
template <bool centred, class T>
HWY_INLINE void Normalize(const T* x, const Computed<T>* gain, const Computed<T>* bias, Computed<T> epsilon, T* y,
                          Computed<T> mean, Computed<T>* rstd, int64_t n) {
  const D<T> d;
  const V<T> means = hn::Set(d, mean);
  const auto from_mean = [&](V<T> v) HWY_ATTR { return centred ? hn::Sub(v, means) : v; };
  const Computed<T> squares = SumVectors<T>(n, [&](auto at, int64_t i) HWY_ATTR {
    const V<T> v = from_mean(at.Load(x + i));
    return hn::Mul(v, v);
  });
  *rstd = 1 / std::sqrt(squares / n + epsilon);
  const V<T> scale = hn::Set(d, *rstd);
  ForEachVector<T>(n, [&](auto at, int64_t i) HWY_ATTR {
    const V<T> normal = hn::Mul(from_mean(at.Load(x + i)), scale);
    const V<T> gains = at.Load(gain + i);
    at.Store(centred ? hn::MulAdd(normal, gains, at.Load(bias + i)) : hn::Mul(normal, gains), y + i);
  });
}

template <class T>
void Norm(const T* x, const Computed<T>* gain, const Computed<T>* bias, Computed<T> epsilon, T* y, Computed<T>* mean,
          Computed<T>* rstd, int64_t n) {
  if (bias == nullptr) return Normalize<false>(x, gain, bias, epsilon, y, Computed<T>{0}, rstd, n);
  *mean = Sum(x, n) / n;
  Normalize<true>(x, gain, bias, epsilon, y, *mean, rstd, n);
}

template <bool centred, class T>
HWY_INLINE void NormalizeGradient(const T* x, const Computed<T>* gain, Computed<T> mean, Computed<T> rstd, const T* dy,
                                  T* dx, Computed<T>* dgain, Computed<T>* dbias, int64_t n) {
  const D<T> d;
  const V<T> means = hn::Set(d, mean), scale = hn::Set(d, rstd);
  const auto normal_of = [&](V<T> v) HWY_ATTR { return hn::Mul(centred ? hn::Sub(v, means) : v, scale); };
  Computed<T> a = 0;
  if (centred)
    a = SumVectors<T>(n, [&](auto at, int64_t i) HWY_ATTR { return hn::Mul(at.Load(dy + i), at.Load(gain + i)); });
  const Computed<T> b = SumVectors<T>(n, [&](auto at, int64_t i) HWY_ATTR {
    return hn::Mul(hn::Mul(at.Load(dy + i), at.Load(gain + i)), normal_of(at.Load(x + i)));
  });
  const V<T> mean_a = hn::Set(d, a / n), mean_b = hn::Set(d, b / n);
  ForEachVector<T>(n, [&](auto at, int64_t i) HWY_ATTR {
    const V<T> g = at.Load(dy + i), normal = normal_of(at.Load(x + i));
    const V<T> h = hn::Mul(g, at.Load(gain + i));
    at.Store(hn::Mul(hn::NegMulAdd(normal, mean_b, centred ? hn::Sub(h, mean_a) : h), scale), dx + i);
    at.Store(hn::MulAdd(g, normal, at.Load(dgain + i)), dgain + i);
    if (centred) at.Store(hn::Add(g, at.Load(dbias + i)), dbias + i);
  });
}

template <class T>
void NormGradient(const T* x, const Computed<T>* gain, Computed<T> mean, Computed<T> rstd, const T* dy, T* dx,
                  Computed<T>* dgain, Computed<T>* dbias, int64_t n) {
  if (dbias == nullptr) return NormalizeGradient<false>(x, gain, Computed<T>{0}, rstd, dy, dx, dgain, dbias, n);
  NormalizeGradient<true>(x, gain, mean, rstd, dy, dx, dgain, dbias, n);
}

template <class T>
void AdamW(const AdamWStep<T>& step, const T* w, const T* m, const T* v, const T* grad, T* next_w, T* next_m, T* next_v,
           int64_t n) {
  const D<T> d;
  const V<T> keep = hn::Set(d, step.keep), grad_scale = hn::Set(d, step.grad_scale), gain1 = hn::Set(d, step.gain1);
  const V<T> beta2 = hn::Set(d, step.beta2), gain2 = hn::Set(d, step.gain2), size = hn::Set(d, step.step_size);
  const V<T> root = hn::Set(d, step.inverse_root_correction), epsilon = hn::Set(d, step.epsilon);
  ForEachVector<T>(n, [&](auto at, int64_t i) HWY_ATTR {
    const V<T> g = hn::Mul(at.Load(grad + i), grad_scale);
    const V<T> first = at.Load(m + i);
    const V<T> mean = hn::MulAdd(gain1, hn::Sub(g, first), first);
    const V<T> square = hn::MulAdd(gain2, hn::Mul(g, g), hn::Mul(beta2, at.Load(v + i)));
    const V<T> denominator = hn::MulAdd(hn::Sqrt(square), root, epsilon);
    const V<T> update = hn::Div(mean, denominator);
    at.Store(hn::NegMulAdd(size, update, hn::Mul(at.Load(w + i), keep)), next_w + i);
    at.Store(mean, next_m + i);
    at.Store(square, next_v + i);
  });
}

template <class T>
void Sgd(const SgdStep<T>& step, const T* w, const T* m, const T* grad, T* next_w, T* next_m, int64_t n) {
  const D<T> d;
  const V<T> grad_scale = hn::Set(d, step.grad_scale), decay = hn::Set(d, step.weight_decay);
  const V<T> momentum = hn::Set(d, step.momentum), rate = hn::Set(d, step.rate);
  ForEachVector<T>(n, [&](auto at, int64_t i) HWY_ATTR {
    const V<T> before = at.Load(w + i);
    const V<T> g = hn::MulAdd(decay, before, hn::Mul(at.Load(grad + i), grad_scale));
    const V<T> mean = hn::MulAdd(momentum, at.Load(m + i), g);
    const V<T> change = step.nesterov ? hn::MulAdd(momentum, mean, g) : mean;
    at.Store(hn::NegMulAdd(rate, change, before), next_w + i);
    at.Store(mean, next_m + i);
  });
}

template <class T>
constexpr RowKernels<T> kTable = {
    .sum = Sum<T>,
    .square_sum = SquareSum<T>,
    .max = Max<T>,
    .sum_rows = SumRows<T>,
    .max_rows = MaxRows<T>,
    .add_to = AddTo<T>,
    .softmax = Softmax<T>,
    .log_sum_exp = LogSumExpOf<T>,
    .subtract = Subtract<T>,
    .exp_difference = ExpDifference<T>,
    .norm = Norm<T>,
    .norm_gradient = NormGradient<T>,
    .adamw = AdamW<T>,
    .sgd = Sgd<T>,
};

template <>
constexpr RowKernels<BF16> kTable<BF16> = {
    .sum = Sum<BF16>,
    .sum_rows = SumRows<BF16>,
    .norm = Norm<BF16>,
    .norm_gradient = NormGradient<BF16>,
};

const RowTables* Tables() {
  static constexpr RowTables kTables = {kTable<float>, kTable<double>, kTable<BF16>};
  return &kTables;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(Tables);

const RowTables& AllRows() {
  static const RowTables* const tables = HWY_DYNAMIC_DISPATCH(Tables)();
  return *tables;
}

}  // namespace weft
#endif  // HWY_ONCE
