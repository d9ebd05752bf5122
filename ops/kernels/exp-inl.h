// These functions compute the exponential and the hyperbolic tangent of vectors, and keep NaN. This header is included
// once for each instruction set, like lanes-inl.h.
#if defined(WEFT_OPS_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_EXP_INL_H_
#undef WEFT_OPS_KERNELS_EXP_INL_H_
#else
#define WEFT_OPS_KERNELS_EXP_INL_H_
#endif

#include "hwy/contrib/math/math-inl.h"
#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

// Returns exp(x) for x up to about 100, the limit of Highway's function. Keeps NaN, for which that function returns 0.
template <class T>
HWY_INLINE V<T> Exp(V<T> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(D<T>(), x));
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
