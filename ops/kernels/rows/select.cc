#include <functional>
#include <tuple>
#include <type_traits>

#include "weft/ops/kernels/rows/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/rows/select.cc"
#include "hwy/foreach_target.h"

// These includes follow foreach_target.h, which includes this file once for each instruction set.
#include "hwy/highway.h"
#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {
namespace {

template <class C, class T>
HWY_INLINE hn::Mask<D<T>> CompareLanes(V<T> a, V<T> b) {
  if constexpr (std::is_same_v<C, std::equal_to<>>) return hn::Eq(a, b);
  if constexpr (std::is_same_v<C, std::less<>>) return hn::Lt(a, b);
  if constexpr (!std::is_integral_v<T>) return hn::Le(a, b);
  return hn::Not(hn::Lt(b, a));  // Highway has no Le for integers
}

// Stores a byte for each lane: 1 where the mask is true, else 0.
template <class T>
HWY_INLINE void StoreMask(hn::Mask<D<T>> mask, bool* p) {
  const hn::RebindToUnsigned<D<T>> bits;
  const auto ones = hn::ShiftRight<8 * sizeof(Computed<T>) - 1>(hn::BitCast(bits, hn::VecFromMask(D<T>(), mask)));
  const hn::Rebind<uint8_t, D<T>> bytes;
  hn::StoreU(hn::TruncateTo(bytes, ones), bytes, reinterpret_cast<uint8_t*>(p));
}

template <class C, class T, int kAStride, int kBStride>
HWY_INLINE void CompareRun(const T* a, const T* b, bool* y, int64_t n) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D<T>()));
  if (n == 0) return;
  const V<T> a0 = hn::Set(D<T>(), static_cast<Computed<T>>(*a)), b0 = hn::Set(D<T>(), static_cast<Computed<T>>(*b));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V<T> from_a = kAStride != 0 ? Full().Load(a + i) : a0, from_b = kBStride != 0 ? Full().Load(b + i) : b0;
    StoreMask<T>(CompareLanes<C, T>(from_a, from_b), y + i);
  }
  for (; i < n; ++i) y[i] = C()(a[i * kAStride], b[i * kBStride]);
}

template <class T>
void CompareAs(Comparison c, const T* a, int a_stride, const T* b, int b_stride, bool* y, int64_t n) {
  const auto compare = [&](auto function) HWY_ATTR {
    WithStrides(a_stride, b_stride, [&](auto by_a, auto by_b) HWY_ATTR {
      CompareRun<decltype(function), T, decltype(by_a)::value, decltype(by_b)::value>(a, b, y, n);
    });
  };
  if (c == Comparison::kEqual) return compare(std::equal_to<>());
  c == Comparison::kLess ? compare(std::less<>()) : compare(std::less_equal<>());
}

// The element type of the vectors that move elements of T: an integer of the same size for BF16 and bool, otherwise T.
template <class T>
using Moved =
    std::conditional_t<std::is_same_v<T, BF16>, uint16_t, std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;

// Loads a byte for each lane, and returns a mask that is true where the byte is not 0.
template <class T>
HWY_INLINE hn::Mask<hn::ScalableTag<T>> LoadMask(const bool* p) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const auto ones = hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(p));
  if constexpr (sizeof(T) == 1) {
    return hn::Ne(ones, hn::Zero(bits));
  } else if constexpr (sizeof(T) == 8) {
    const auto wide = hn::PromoteTo(bits, hn::PromoteTo(hn::Rebind<uint32_t, decltype(d)>(), ones));
    return hn::RebindMask(d, hn::Ne(wide, hn::Zero(bits)));
  } else {
    return hn::RebindMask(d, hn::Ne(hn::PromoteTo(bits, ones), hn::Zero(bits)));
  }
}

template <class T, int kAStride, int kBStride>
HWY_INLINE void SelectRun(const bool* mask, const T* a, const T* b, T* y, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n == 0) return;
  const auto a0 = hn::Set(d, *a), b0 = hn::Set(d, *b);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto from_a = kAStride != 0 ? hn::LoadU(d, a + i) : a0, from_b = kBStride != 0 ? hn::LoadU(d, b + i) : b0;
    hn::StoreU(hn::IfThenElse(LoadMask<T>(mask + i), from_a, from_b), d, y + i);
  }
  for (; i < n; ++i) y[i] = mask[i] ? a[i * kAStride] : b[i * kBStride];
}

template <class T>
void SelectBy(const bool* mask, const T* a, int a_stride, const T* b, int b_stride, T* y, int64_t n) {
  using M = Moved<T>;
  WithStrides(a_stride, b_stride, [&](auto by_a, auto by_b) HWY_ATTR {
    SelectRun<M, decltype(by_a)::value, decltype(by_b)::value>(
        mask, reinterpret_cast<const M*>(a), reinterpret_cast<const M*>(b), reinterpret_cast<M*>(y), n);
  });
}

template <class T>
int64_t FirstAbove(const T* x, int64_t begin, int64_t n, T limit) {
  const D<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V<T> limits = hn::Set(d, limit);
  int64_t i = begin;
  for (; i + lanes <= n; i += lanes) {
    const auto above = hn::Not(CompareLanes<std::less_equal<>, T>(Full().Load(x + i), limits));
    if (!hn::AllFalse(d, above)) return i + static_cast<int64_t>(hn::FindFirstTrue(d, above));
  }
  while (i < n && x[i] <= limit) ++i;
  return i;
}

template <class T>
constexpr SelectKernels<T> kTable = {.compare = CompareAs<T>, .select = SelectBy<T>, .first_above = FirstAbove<T>};
template <>
constexpr SelectKernels<BF16> kTable<BF16> = {.compare = CompareAs<BF16>, .select = SelectBy<BF16>};
template <>
constexpr SelectKernels<bool> kTable<bool> = {.select = SelectBy<bool>};

const auto* Tables() {
  static constexpr auto kTables =
      std::make_tuple(kTable<float>, kTable<double>, kTable<BF16>, kTable<int32_t>, kTable<bool>);
  return &kTables;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(Tables);

template <class T>
const SelectKernels<T>& Selects() {
  return std::get<SelectKernels<T>>(*HWY_DYNAMIC_DISPATCH(Tables)());
}
template const SelectKernels<float>& Selects<float>();
template const SelectKernels<double>& Selects<double>();
template const SelectKernels<BF16>& Selects<BF16>();
template const SelectKernels<int32_t>& Selects<int32_t>();
template const SelectKernels<bool>& Selects<bool>();

}  // namespace weft
#endif  // HWY_ONCE
