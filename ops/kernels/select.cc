#include "weft/ops/kernels/select.h"

#include <functional>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/select.cc"
#include "hwy/foreach_target.h"

// After foreach_target.h, which includes this file once for each instruction set.
#include "hwy/highway.h"
#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

// Calls f with the steps as constants.
template <class F>
HWY_INLINE void WithSteps(int a_step, int b_step, F f) {
  using Zero = std::integral_constant<int, 0>;
  using One = std::integral_constant<int, 1>;
  if (a_step != 0 && b_step != 0) return f(One(), One());
  if (a_step != 0) return f(One(), Zero());
  if (b_step != 0) return f(Zero(), One());
  f(Zero(), Zero());
}

template <class C, class T>
HWY_INLINE hn::Mask<D<T>> CompareLanes(V<T> a, V<T> b) {
  if constexpr (std::is_same_v<C, std::equal_to<>>) {
    return hn::Eq(a, b);
  } else if constexpr (std::is_same_v<C, std::less<>>) {
    return hn::Lt(a, b);
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return hn::Not(hn::Lt(b, a));
  } else {
    return hn::Le(a, b);
  }
}

// A byte for each lane, 1 where the mask is true.
template <class T>
HWY_INLINE void StoreMask(hn::Mask<D<T>> mask, bool* p) {
  const hn::RebindToUnsigned<D<T>> bits;
  const auto ones = hn::ShiftRight<8 * sizeof(Computed<T>) - 1>(hn::BitCast(bits, hn::VecFromMask(D<T>(), mask)));
  const hn::Rebind<uint8_t, D<T>> bytes;
  hn::StoreU(hn::TruncateTo(bytes, ones), bytes, reinterpret_cast<uint8_t*>(p));
}

template <class C, class T, int kAStep, int kBStep>
HWY_INLINE void CompareRun(const T* a, const T* b, bool* y, int64_t n) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D<T>()));
  int64_t i = 0;
  if (n >= lanes) {
    const V<T> a0 = hn::Set(D<T>(), static_cast<Computed<T>>(*a)), b0 = hn::Set(D<T>(), static_cast<Computed<T>>(*b));
    for (; i + lanes <= n; i += lanes) {
      const V<T> from_a = kAStep != 0 ? LoadLanes(a + i) : a0, from_b = kBStep != 0 ? LoadLanes(b + i) : b0;
      StoreMask<T>(CompareLanes<C, T>(from_a, from_b), y + i);
    }
  }
  for (; i < n; ++i) y[i] = C()(a[i * kAStep], b[i * kBStep]);
}

template <class C, class T>
HWY_INLINE void CompareBy(const T* a, int a_step, const T* b, int b_step, bool* y, int64_t n) {
  WithSteps(a_step, b_step, [&](auto by_a, auto by_b) HWY_ATTR {
    CompareRun<C, T, decltype(by_a)::value, decltype(by_b)::value>(a, b, y, n);
  });
}

template <class T>
HWY_INLINE void CompareAs(Comparison c, const T* a, int a_step, const T* b, int b_step, bool* y, int64_t n) {
  switch (c) {
    case Comparison::kEqual:
      return CompareBy<std::equal_to<>>(a, a_step, b, b_step, y, n);
    case Comparison::kLess:
      return CompareBy<std::less<>>(a, a_step, b, b_step, y, n);
    case Comparison::kLessEqual:
      return CompareBy<std::less_equal<>>(a, a_step, b, b_step, y, n);
  }
}

// As many bytes as there are lanes: true where one is not 0.
template <class T>
HWY_INLINE hn::Mask<hn::ScalableTag<T>> LoadMask(const bool* p) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto load = [&]() HWY_ATTR {
    const auto ones = hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(p));
    if constexpr (sizeof(T) == 1) {
      return ones;
    } else if constexpr (sizeof(T) == 8) {
      return hn::PromoteTo(bits, hn::PromoteTo(hn::Rebind<uint32_t, decltype(d)>(), ones));
    } else {
      return hn::PromoteTo(bits, ones);
    }
  };
  return hn::RebindMask(d, hn::Ne(load(), hn::Zero(bits)));
}

template <class T, int kAStep, int kBStep>
HWY_INLINE void SelectRun(const bool* mask, const T* a, const T* b, T* y, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (n >= lanes) {
    const auto a0 = hn::Set(d, *a), b0 = hn::Set(d, *b);
    for (; i + lanes <= n; i += lanes) {
      const auto from_a = kAStep != 0 ? hn::LoadU(d, a + i) : a0, from_b = kBStep != 0 ? hn::LoadU(d, b + i) : b0;
      hn::StoreU(hn::IfThenElse(LoadMask<T>(mask + i), from_a, from_b), d, y + i);
    }
  }
  for (; i < n; ++i) y[i] = mask[i] ? a[i * kAStep] : b[i * kBStep];
}

template <class T>
HWY_INLINE void SelectBy(const bool* mask, const T* a, int a_step, const T* b, int b_step, T* y, int64_t n) {
  WithSteps(a_step, b_step, [&](auto by_a, auto by_b) HWY_ATTR {
    SelectRun<T, decltype(by_a)::value, decltype(by_b)::value>(mask, a, b, y, n);
  });
}

void CompareF32(Comparison c, const float* a, int a_step, const float* b, int b_step, bool* y, int64_t n) {
  CompareAs(c, a, a_step, b, b_step, y, n);
}
void CompareF64(Comparison c, const double* a, int a_step, const double* b, int b_step, bool* y, int64_t n) {
  CompareAs(c, a, a_step, b, b_step, y, n);
}
void CompareBF16(Comparison c, const BF16* a, int a_step, const BF16* b, int b_step, bool* y, int64_t n) {
  CompareAs(c, a, a_step, b, b_step, y, n);
}
void CompareI32(Comparison c, const int32_t* a, int a_step, const int32_t* b, int b_step, bool* y, int64_t n) {
  CompareAs(c, a, a_step, b, b_step, y, n);
}

void SelectF32(const bool* mask, const float* a, int a_step, const float* b, int b_step, float* y, int64_t n) {
  SelectBy(mask, a, a_step, b, b_step, y, n);
}
void SelectF64(const bool* mask, const double* a, int a_step, const double* b, int b_step, double* y, int64_t n) {
  SelectBy(mask, a, a_step, b, b_step, y, n);
}
void SelectI32(const bool* mask, const int32_t* a, int a_step, const int32_t* b, int b_step, int32_t* y, int64_t n) {
  SelectBy(mask, a, a_step, b, b_step, y, n);
}
void Select16(const bool* mask, const uint16_t* a, int a_step, const uint16_t* b, int b_step, uint16_t* y, int64_t n) {
  SelectBy(mask, a, a_step, b, b_step, y, n);
}
void Select8(const bool* mask, const uint8_t* a, int a_step, const uint8_t* b, int b_step, uint8_t* y, int64_t n) {
  SelectBy(mask, a, a_step, b, b_step, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(CompareF32);
HWY_EXPORT(CompareF64);
HWY_EXPORT(CompareBF16);
HWY_EXPORT(CompareI32);
HWY_EXPORT(SelectF32);
HWY_EXPORT(SelectF64);
HWY_EXPORT(SelectI32);
HWY_EXPORT(Select16);
HWY_EXPORT(Select8);

void Compare(Comparison c, const float* a, int a_step, const float* b, int b_step, bool* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(CompareF32)(c, a, a_step, b, b_step, y, n);
}
void Compare(Comparison c, const double* a, int a_step, const double* b, int b_step, bool* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(CompareF64)(c, a, a_step, b, b_step, y, n);
}
void Compare(Comparison c, const BF16* a, int a_step, const BF16* b, int b_step, bool* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(CompareBF16)(c, a, a_step, b, b_step, y, n);
}
void Compare(Comparison c, const int32_t* a, int a_step, const int32_t* b, int b_step, bool* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(CompareI32)(c, a, a_step, b, b_step, y, n);
}

void Select(const bool* mask, const float* a, int a_step, const float* b, int b_step, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SelectF32)(mask, a, a_step, b, b_step, y, n);
}
void Select(const bool* mask, const double* a, int a_step, const double* b, int b_step, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SelectF64)(mask, a, a_step, b, b_step, y, n);
}
void Select(const bool* mask, const int32_t* a, int a_step, const int32_t* b, int b_step, int32_t* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SelectI32)(mask, a, a_step, b, b_step, y, n);
}
void Select(const bool* mask, const BF16* a, int a_step, const BF16* b, int b_step, BF16* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Select16)(mask, &a->bits, a_step, &b->bits, b_step, &y->bits, n);
}
void Select(const bool* mask, const bool* a, int a_step, const bool* b, int b_step, bool* y, int64_t n) {
  const auto bytes = [](const bool* p) { return reinterpret_cast<const uint8_t*>(p); };
  HWY_DYNAMIC_DISPATCH(Select8)(mask, bytes(a), a_step, bytes(b), b_step, reinterpret_cast<uint8_t*>(y), n);
}

}  // namespace weft
#endif  // HWY_ONCE
