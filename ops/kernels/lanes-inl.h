// These functions load, store, convert and transpose vectors of floats. f32 and f64 elements are unchanged. bf16
// elements are widened to f32 when loaded, and rounded to nearest even when stored. This header and the others that end
// in -inl.h are included once for each instruction set, after Highway's foreach_target.h.
#if defined(WEFT_OPS_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_LANES_INL_H_
#undef WEFT_OPS_KERNELS_LANES_INL_H_
#else
#define WEFT_OPS_KERNELS_LANES_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

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

// Computes y[i] = x[i]. Elements that do not fill a vector are converted one by one, with the same rounding.
template <class From, class To>
HWY_INLINE void ConvertArray(const From* x, To* y, int64_t n) {
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

#if HWY_TARGET != HWY_SCALAR
// Divides each row into groups of kBytes bytes. Exchanges the odd groups of row `a` with the even groups of row `b`.
template <size_t kBytes, class W>
HWY_INLINE void ExchangeGroups(V<W>* a, V<W>* b) {
  const D<W> d;
  const V<W> a0 = *a, b0 = *b;
  if constexpr (kBytes == sizeof(W)) {
    *a = hn::OddEven(hn::DupEven(b0), a0);
    *b = hn::OddEven(b0, hn::DupOdd(a0));
  } else if constexpr (kBytes == sizeof(double)) {
    const hn::Repartition<double, D<W>> pairs;
    const auto a1 = hn::BitCast(pairs, a0), b1 = hn::BitCast(pairs, b0);
    *a = hn::BitCast(d, hn::OddEven(hn::DupEven(b1), a1));
    *b = hn::BitCast(d, hn::OddEven(b1, hn::DupOdd(a1)));
  } else if constexpr (kBytes == 16) {
    *a = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b0), a0);
    *b = hn::OddEvenBlocks(b0, hn::SwapAdjacentBlocks(a0));
  } else {
    *a = hn::ConcatLowerLower(d, b0, a0);
    *b = hn::ConcatUpperUpper(d, b0, a0);
  }
}

// Exchanges groups of kHalf elements between each pair of rows that are kHalf rows apart.
template <size_t kHalf, class W, size_t... kPairs>
HWY_INLINE void ExchangeGroups(V<W>* rows, std::index_sequence<kPairs...>) {
  (ExchangeGroups<kHalf * sizeof(W), W>(rows + kPairs / kHalf * 2 * kHalf + kPairs % kHalf,
                                        rows + kPairs / kHalf * 2 * kHalf + kPairs % kHalf + kHalf),
   ...);
}

// Transposes N rows of N lanes, where N is the number of lanes of a vector. Each step exchanges groups of kLanes / 2
// lanes between rows that are kLanes / 2 apart. The first step has kLanes = N, and each other step half of the last.
template <size_t kLanes, class W>
HWY_INLINE void TransposeSquare(V<W>* rows) {
  if constexpr (kLanes > 1) {
    ExchangeGroups<kLanes / 2, W>(rows, std::make_index_sequence<hn::MaxLanes(D<W>()) / 2>());
    TransposeSquare<kLanes / 2, W>(rows);
  }
}
#else
template <size_t kLanes, class W>
HWY_INLINE void TransposeSquare(V<W>*) {}  // of one element
#endif

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
