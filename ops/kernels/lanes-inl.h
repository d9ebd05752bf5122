// These functions load and store vectors of floats. f32 and f64 elements are unchanged. bf16 elements are widened to
// f32 when loaded, and rounded to nearest even when stored. This header and the others that end in -inl.h are included
// once for each instruction set, after Highway's foreach_target.h.
#if defined(WEFT_OPS_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_LANES_INL_H_
#undef WEFT_OPS_KERNELS_LANES_INL_H_
#else
#define WEFT_OPS_KERNELS_LANES_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "weft/core/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using D = hn::ScalableTag<Computed<T>>;
template <class T>
using V = hn::Vec<D<T>>;

using BitsOfBF16 = hn::Rebind<uint16_t, hn::ScalableTag<float>>;

HWY_INLINE V<float> Widen(hn::Vec<BitsOfBF16> x) {
  const hn::RebindToUnsigned<D<float>> d32;
  return hn::BitCast(D<float>(), hn::ShiftLeft<16>(hn::PromoteTo(d32, x)));
}

// Rounds each lane as BF16's constructor does. The bf16 is the upper half of the lane; the lower half is undefined.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D<float>>> RoundedBits(V<float> x) {
  const hn::RebindToUnsigned<D<float>> d32;
  const auto bits = hn::BitCast(d32, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fff)));
  return hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(x)), hn::Or(bits, hn::Set(d32, 0x400000)), rounded);
}

HWY_INLINE hn::Vec<BitsOfBF16> Narrow(V<float> x) {
  const hn::RebindToSigned<D<float>> i32;
  return hn::DemoteTo(BitsOfBF16(), hn::BitCast(i32, hn::ShiftRight<16>(RoundedBits(x))));
}

// Full accesses a whole vector of elements, and Partial only its first `n`. A kernel is written once for both, so
// elements at the end of an array are computed by the same instructions as the others.
struct Full {
  template <class T>
  HWY_INLINE V<T> Load(const T* p) const {
    if constexpr (std::is_same_v<T, BF16>) {
      return Widen(hn::LoadU(BitsOfBF16(), &p->bits));
    } else {
      return hn::LoadU(D<T>(), p);
    }
  }
  template <class T>
  HWY_INLINE void Store(V<T> v, T* p) const {
    if constexpr (std::is_same_v<T, BF16>) {
      hn::StoreU(Narrow(v), BitsOfBF16(), &p->bits);
    } else {
      hn::StoreU(v, D<T>(), p);
    }
  }
};

struct Partial {
  size_t n;

#if HWY_MEM_OPS_MIGHT_FAULT  // masked loads read all lanes
  template <class T>
  HWY_INLINE V<T> Load(const T* p) const {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
    for (size_t i = 0; i < n; ++i) lanes[i] = p[i];
    return Full().Load(lanes);
  }
  template <class T>
  HWY_INLINE void Store(V<T> v, T* p) const {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    Full().Store(v, lanes);
    for (size_t i = 0; i < n; ++i) p[i] = lanes[i];
  }
#else
  template <class T>
  HWY_INLINE V<T> Load(const T* p) const {
    if constexpr (std::is_same_v<T, BF16>) {
      return Widen(hn::MaskedLoad(hn::FirstN(BitsOfBF16(), n), BitsOfBF16(), &p->bits));
    } else {
      return hn::MaskedLoad(hn::FirstN(D<T>(), n), D<T>(), p);
    }
  }
  template <class T>
  HWY_INLINE void Store(V<T> v, T* p) const {
    if constexpr (std::is_same_v<T, BF16>) {
      hn::BlendedStore(Narrow(v), hn::FirstN(BitsOfBF16(), n), BitsOfBF16(), &p->bits);
    } else {
      hn::BlendedStore(v, hn::FirstN(D<T>(), n), D<T>(), p);
    }
  }
#endif
};

// Calls f(access, i) for each vector of elements, where i is the index of its first element. `access` is Full or, for
// the rest at the end, Partial.
template <class T, class F>
HWY_INLINE void ForEachVector(int64_t n, F f) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D<T>()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(Full(), i);
  if (i < n) f(Partial{static_cast<size_t>(n - i)}, i);
}

// Computes y[i] = x[i].
template <class From, class To>
HWY_INLINE void Convert(const From* x, To* y, int64_t n) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D<From>()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) Full().Store(Full().Load(x + i), y + i);
  for (; i < n; ++i) y[i] = static_cast<To>(x[i]);
}

// Calls f with the strides of two arrays, 0 or 1, as compile-time constants.
template <class F>
HWY_INLINE void WithStrides(int a_stride, int b_stride, F f) {
  using Zero = std::integral_constant<int, 0>;
  using One = std::integral_constant<int, 1>;
  if (a_stride != 0 && b_stride != 0) return f(One(), One());
  if (a_stride != 0) return f(One(), Zero());
  if (b_stride != 0) return f(Zero(), One());
  f(Zero(), Zero());
}

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
