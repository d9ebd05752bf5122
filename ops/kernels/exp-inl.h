// These functions compute the exponential and the hyperbolic tangent of vectors, and keep NaN.
#if defined(WEFT_OPS_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_EXP_INL_H_
#undef WEFT_OPS_KERNELS_EXP_INL_H_
#else
#define WEFT_OPS_KERNELS_EXP_INL_H_
#endif

#include <limits>
#include <type_traits>

#include "hwy/contrib/math/math-inl.h"
#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

// Returns exp(x) for any x, and +inf where std::exp does. Keeps NaN. In float, the result is 0 for x < -86.98, where
// std::exp still returns numbers down to 2^-149.
//
// In float, x = n · ln 2 + r with |r| <= ln 2 / 2, and exp(r) is a polynomial, fitted so that its largest relative
// error is least. The result is off by at most 1 ULP, or 2 on CPUs without fused multiply-adds.
template <class T>
HWY_INLINE V<T> Exp(V<T> x) {
  const D<T> d;
  const auto number = [&](Computed<T> value) HWY_ATTR { return hn::Set(d, value); };
  const auto at_most = [&](V<T> limit)
                           HWY_ATTR { return hn::IfThenElse(hn::Gt(x, limit), limit, x); };  // unlike Min, keeps NaN
  if constexpr (std::is_same_v<Computed<T>, double>) {
    const V<T> largest = number(709.782712893384), infinity = number(std::numeric_limits<double>::infinity());
    return hn::IfThenElse(hn::Gt(x, largest), infinity, hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, at_most(largest))));
  } else {
    x = at_most(number(89));  // exp(89) is +inf
    // After this sum, the lowest bits of `sum` are those of n + 126, which is the exponent of 2^(n - 1).
    const V<T> shift = number(0x1.8p23f + 126), sum = hn::MulAdd(x, number(0x1.715476p+0f), shift);
    const V<T> n = hn::Sub(sum, shift);
    // ln 2 in two parts: the product of the first part and n is exact.
    V<T> r = hn::NegMulAdd(n, number(0.693359375f), x);
    r = hn::NegMulAdd(n, number(-2.12194440e-4f), r);
    V<T> p = hn::MulAdd(number(2 * 1.38146142e-3f), r, number(2 * 8.36871011e-3f));  // 2 · exp(r)
    p = hn::MulAdd(p, r, number(2 * 4.16683874e-2f));
    p = hn::MulAdd(p, r, number(2 * 1.66665207e-1f));
    p = hn::MulAdd(p, r, number(2 * 4.99999935e-1f));
    p = hn::MulAdd(p, r, number(2));
    p = hn::MulAdd(p, r, number(2));
    const hn::RebindToUnsigned<D<T>> bits;
    const V<T> power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, sum)));
    return hn::IfThenZeroElse(hn::Lt(x, number(-86.98f)), hn::Mul(p, power));
  }
}

template <class T>
HWY_INLINE V<T> Tanh(V<T> x) {
  const D<T> d;
  const V<T> limit = hn::Set(d, static_cast<Computed<T>>(20));  // tanh(20) rounds to 1
  const V<T> y = hn::Tanh(d, hn::Max(hn::Neg(limit), hn::Min(x, limit)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
