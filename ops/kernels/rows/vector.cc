#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/ops/kernels/rows/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/rows/vector.cc"
#include "hwy/foreach_target.h"
// These includes follow foreach_target.h, which includes this file once for each instruction set.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "weft/ops/kernels/exp-inl.h"
#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

// Highway's function is undefined outside its documented range. LogOf accepts any x, as <cmath> does.
template <class D, class V>
HWY_INLINE V LogOf(D d, V x) {
  const V zero = hn::Zero(d), infinity = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::infinity());
  V y = hn::IfThenElse(hn::Ge(x, infinity), infinity, hn::Log(d, x));
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  y = hn::IfThenElse(hn::Lt(x, zero), hn::NaN(d), y);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// Returns erf(x) in f32, with an absolute error below 2e-7. For |x| < 3.92, erf(x) ≈ x · (5/16 + P(x²) / Q(x²)), with
// near-minimax coefficients; for larger |x|, the result is ±1. With the term 5/16, P / Q and its rounding errors are
// small for large x.
template <class D>
requires(sizeof(hn::TFromD<D>) == 4) HWY_INLINE hn::Vec<D> ErfOf(D d, hn::Vec<D> x) {
  const auto u = hn::Mul(x, x);
  auto p = hn::Set(d, -9.853053312e-6f), q = hn::Set(d, 3.809004954e-5f);
  for (float c : {-7.836571855e-5f, -9.126059678e-4f, 0.01708936615f, 0.03349342834f, 0.8158791464f}) {
    p = hn::MulAdd(p, u, hn::Set(d, c));
  }
  for (float c : {1.162292815e-3f, 0.01496738378f, 0.1141007107f, 0.5020586022f, 1.0f}) {
    q = hn::MulAdd(q, u, hn::Set(d, c));
  }
  const auto y = hn::Mul(hn::Add(hn::Div(p, q), hn::Set(d, 0.3125f)), x);
  const auto one = hn::CopySign(hn::Set(d, 1.0f), x);  // erf never exceeds 1
  const auto beyond = hn::Or(hn::Ge(u, hn::Set(d, 3.92f * 3.92f)), hn::Gt(hn::Abs(y), hn::Set(d, 1.0f)));
  return hn::IfThenElse(beyond, one, y);
}
template <class D>
requires(sizeof(hn::TFromD<D>) == 8) HWY_INLINE hn::Vec<D> ErfOf(D d, hn::Vec<D> x) {
  HWY_ALIGN double lanes[hn::MaxLanes(D())];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = std::erf(lanes[i]);
  return hn::Load(d, lanes);
}

template <class D, class V>
HWY_INLINE V SigmoidOf(D d, V x) {
  const V one = hn::Set(d, static_cast<hn::TFromD<D>>(1));
  return hn::Div(one, hn::Add(one, Exp<hn::TFromD<D>>(hn::Neg(x))));
}

// Computes max(x, 0) + log(1 + exp(-|x|)), in which exp never overflows.
template <class D, class V>
HWY_INLINE V SoftplusOf(D d, V x) {
  const V tail = hn::Log1p(d, Exp<hn::TFromD<D>>(hn::Neg(hn::Abs(x))));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Add(hn::Max(x, hn::Zero(d)), tail));
}

// Φ(x) = (1 + erf(x / √2)) / 2.
template <class D, class V>
HWY_INLINE V NormalDistribution(D d, V x) {
  using T = hn::TFromD<D>;
  const V half = hn::Set(d, static_cast<T>(0.5));
  return hn::MulAdd(half, ErfOf(d, hn::Mul(x, hn::Set(d, static_cast<T>(0.70710678118654752440)))), half);
}

// Returns exp(-2u) for u = √(2/π) · (x + 0.044715 x³), because (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)).
template <class D, class V>
HWY_INLINE V GeluTanhExponential(D d, V x) {
  using T = hn::TFromD<D>;
  const V cubic = hn::Set(d, static_cast<T>(0.044715));
  const V scale = hn::Set(d, static_cast<T>(-2 * 0.79788456080286535588));
  return Exp<T>(hn::Mul(scale, hn::MulAdd(hn::Mul(cubic, hn::Mul(x, x)), x, x)));
}

template <class D, class V>
HWY_INLINE V GeluTanh(D d, V x) {
  return hn::Div(x, hn::Add(hn::Set(d, static_cast<hn::TFromD<D>>(1)), GeluTanhExponential(d, x)));
}

// Clamps x to ±10: beyond, the derivatives below are 0 or 1 within 1e-20. Thus powers and exponentials stay finite.
template <class D, class V>
HWY_INLINE V ClampGelu(D d, V x) {
  const V limit = hn::Set(d, static_cast<hn::TFromD<D>>(10));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Max(hn::Neg(limit), hn::Min(x, limit)));
}

// d/dx x · Φ(x) = Φ(x) + x · exp(-x² / 2) / √(2π).
template <class D, class V>
HWY_INLINE V GeluErfGradient(D d, V x, V dy) {
  using T = hn::TFromD<D>;
  x = ClampGelu(d, x);
  const V density = Exp<T>(hn::Mul(hn::Mul(x, x), hn::Set(d, static_cast<T>(-0.5))));
  const V scale = hn::Set(d, static_cast<T>(0.39894228040143267794));
  return hn::Mul(dy, hn::MulAdd(hn::Mul(x, scale), density, NormalDistribution(d, x)));
}

// d/dx x · s, where e = exp(-2u) and s = 1 / (1 + e): s + x · 2u' · e · s², with u' = √(2/π) · (1 + 3 · 0.044715 x²).
template <class D, class V>
HWY_INLINE V GeluTanhGradient(D d, V x, V dy) {
  using T = hn::TFromD<D>;
  x = ClampGelu(d, x);
  const V one = hn::Set(d, static_cast<T>(1)), cubic = hn::Set(d, static_cast<T>(3 * 0.044715));
  const V scale = hn::Set(d, static_cast<T>(2 * 0.79788456080286535588));
  const V e = GeluTanhExponential(d, x), s = hn::Div(one, hn::Add(one, e));
  const V slope = hn::Mul(scale, hn::MulAdd(cubic, hn::Mul(x, x), one));
  return hn::Mul(dy, hn::MulAdd(hn::Mul(x, slope), hn::Mul(hn::Mul(e, s), s), s));
}

template <class V>
HWY_INLINE V Minimum(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
}
template <class V>
HWY_INLINE V Maximum(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(b)), b, a);
}

template <class T, class F>
HWY_INLINE void MapUnary(F f, const T* x, T* y, int64_t n) {
  ForEachVector<T>(n, [&](auto at, int64_t i) HWY_ATTR { at.Store(f(D<T>(), at.Load(x + i)), y + i); });
}

template <class T, class F>
HWY_INLINE void MapBinary(F f, const T* a, int a_stride, const T* b, int b_stride, T* y, int64_t n) {
  if (n == 0) return;
  const D<T> d;
  const V<T> a0 = hn::Set(d, a[0]), b0 = hn::Set(d, b[0]);
  WithStrides(a_stride, b_stride, [&](auto by_a, auto by_b) HWY_ATTR {
    ForEachVector<T>(n, [&](auto at, int64_t i) HWY_ATTR {
      at.Store(f(d, by_a() ? at.Load(a + i) : a0, by_b() ? at.Load(b + i) : b0), y + i);
    });
  });
}

// HWY_FLATTEN inlines the function of each case into its loops.
template <class T>
HWY_FLATTEN void Unary(UnaryFunction f, const T* x, T* y, int64_t n) {
  const auto map = [&](auto function) HWY_ATTR { MapUnary(function, x, y, n); };
  switch (f) {
    case UnaryFunction::kExp:
      return map([](auto, auto v) HWY_ATTR { return Exp<T>(v); });
    case UnaryFunction::kLog:
      return map([](auto d, auto v) HWY_ATTR { return LogOf(d, v); });
    case UnaryFunction::kSqrt:
      return map([](auto, auto v) HWY_ATTR { return hn::Sqrt(v); });
    case UnaryFunction::kTanh:
      return map([](auto, auto v) HWY_ATTR { return Tanh<T>(v); });
    case UnaryFunction::kErf:
      return map([](auto d, auto v) HWY_ATTR { return ErfOf(d, v); });
    case UnaryFunction::kRelu:
      return map([](auto d, auto v) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v); });
    case UnaryFunction::kSigmoid:
      return map([](auto d, auto v) HWY_ATTR { return SigmoidOf(d, v); });
    case UnaryFunction::kSoftplus:
      return map([](auto d, auto v) HWY_ATTR { return SoftplusOf(d, v); });
    case UnaryFunction::kAbs:
      return map([](auto, auto v) HWY_ATTR { return hn::Abs(v); });
    case UnaryFunction::kGeluErf:
      return map([](auto d, auto v) HWY_ATTR { return hn::Mul(v, NormalDistribution(d, v)); });
    case UnaryFunction::kGeluTanh:
      return map([](auto d, auto v) HWY_ATTR { return GeluTanh(d, v); });
  }
}

template <class T>
HWY_FLATTEN void Binary(BinaryFunction f, const T* a, int a_stride, const T* b, int b_stride, T* y, int64_t n) {
  const auto map = [&](auto function) HWY_ATTR { MapBinary(function, a, a_stride, b, b_stride, y, n); };
  switch (f) {
    case BinaryFunction::kAdd:
      return map([](auto, auto u, auto v) HWY_ATTR { return hn::Add(u, v); });
    case BinaryFunction::kSub:
      return map([](auto, auto u, auto v) HWY_ATTR { return hn::Sub(u, v); });
    case BinaryFunction::kMul:
      return map([](auto, auto u, auto v) HWY_ATTR { return hn::Mul(u, v); });
    case BinaryFunction::kDiv:
      return map([](auto, auto u, auto v) HWY_ATTR { return hn::Div(u, v); });
    case BinaryFunction::kMinimum:
      return map([](auto, auto u, auto v) HWY_ATTR { return Minimum(u, v); });
    case BinaryFunction::kMaximum:
      return map([](auto, auto u, auto v) HWY_ATTR { return Maximum(u, v); });
    case BinaryFunction::kGeluErfGradient:
      return map([](auto d, auto u, auto v) HWY_ATTR { return GeluErfGradient(d, u, v); });
    case BinaryFunction::kGeluTanhGradient:
      return map([](auto d, auto u, auto v) HWY_ATTR { return GeluTanhGradient(d, u, v); });
  }
}

template <class T>
HWY_FLATTEN void Multiply(const T* x, Computed<T> factor, T* y, int64_t n) {
  const V<T> factors = hn::Set(D<T>(), factor);
  MapUnary([&](auto, auto v) HWY_ATTR { return hn::Mul(v, factors); }, x, y, n);
}

// Computes in 64 bits, which cannot overflow. The lower 32 bits are the wrapped result.
template <class F>
void MapIntegers(F f, const int32_t* a, int a_stride, const int32_t* b, int b_stride, int32_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<int32_t>(f(int64_t{a[i * a_stride]}, int64_t{b[i * b_stride]}));
}

void BinaryOfIntegers(BinaryFunction f, const int32_t* a, int a_stride, const int32_t* b, int b_stride, int32_t* y,
                      int64_t n) {
  const auto map = [&](auto function) { MapIntegers(function, a, a_stride, b, b_stride, y, n); };
  switch (f) {
    case BinaryFunction::kAdd:
      return map([](int64_t x, int64_t z) { return x + z; });
    case BinaryFunction::kSub:
      return map([](int64_t x, int64_t z) { return x - z; });
    case BinaryFunction::kMul:
      return map([](int64_t x, int64_t z) { return x * z; });
    case BinaryFunction::kDiv:
      return map([](int64_t x, int64_t z) { return z == 0 ? 0 : x / z; });
    case BinaryFunction::kMinimum:
      return map([](int64_t x, int64_t z) { return std::min(x, z); });
    case BinaryFunction::kMaximum:
      return map([](int64_t x, int64_t z) { return std::max(x, z); });
    case BinaryFunction::kGeluErfGradient:
    case BinaryFunction::kGeluTanhGradient:
      break;  // for floats only
  }
}

template <class T>
constexpr MapKernels<T> kTable = {.unary = Unary<T>, .binary = Binary<T>, .scale = Multiply<T>};
template <>
constexpr MapKernels<BF16> kTable<BF16> = {.unary = Unary<BF16>,
                                           .binary = Binary<BF16>,
                                           .scale = Multiply<BF16>,
                                           .narrow = ConvertArray<float, BF16>,
                                           .widen = ConvertArray<BF16, float>};
template <>
constexpr MapKernels<int32_t> kTable<int32_t> = {.binary = BinaryOfIntegers};

const MapTables* Tables() {
  static constexpr MapTables kTables = {kTable<float>, kTable<double>, kTable<BF16>, kTable<int32_t>};
  return &kTables;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(Tables);

const MapTables& AllMaps() {
  static const MapTables* const tables = HWY_DYNAMIC_DISPATCH(Tables)();
  return *tables;
}

}  // namespace weft
#endif  // HWY_ONCE
