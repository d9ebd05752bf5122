#include <algorithm>
#include <cmath>
#include <functional>
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

// Dropout draws blocks of Philox numbers in vector lanes and compares them with the rate. It scales the kept elements
// and zeroes the others.
#if HWY_TARGET == HWY_SCALAR

// Without vectors, computes one element after the other. Four elements share a block of random words.
template <class T>
void DropLanes(const RandomStream& random, uint64_t first, double rate, const T* x, T* y, int64_t n) {
  const auto scale = static_cast<Computed<T>>(1 / (1 - rate));
  Philox4 block = {};
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t element = first + static_cast<uint64_t>(i);
    if (i == 0 || element % 4 == 0) block = random.Block(element / 4);
    y[i] = static_cast<T>(RandomStream::UniformOf(block[element % 4]) < rate ? 0 : x[i] * scale);
  }
}

#else

using Words = hn::ScalableTag<uint32_t>;

// Computes two vectors of words of a random stream. Each 64-bit lane of a vector computes one block of four words.
class BlockMaker {
  using Lanes = hn::Repartition<uint64_t, Words>;

 public:
  struct Pair {
    hn::Vec<Words> lower, upper;
  };

  explicit BlockMaker(const RandomStream& random) : random_(random) {
    uint32_t key0 = static_cast<uint32_t>(random.seed), key1 = static_cast<uint32_t>(random.seed >> 32);
    for (auto& keys : keys_) {
      hn::Store(hn::Set(Lanes(), uint64_t{key0}), Lanes(), keys[0]);
      hn::Store(hn::Set(Lanes(), uint64_t{key1}), Lanes(), keys[1]);
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
  }

  // Computes Philox4x32-10 (core/random.h), one block in each 64-bit lane. MulEven reads only the lower halves of
  // lanes, so the upper halves may hold anything. Even lanes hold the first half of the blocks, so that interleaving
  // the lanes restores the order of the blocks.
  HWY_INLINE Pair operator()(uint64_t first) const {
    const Lanes d;
    const Words words;
    const auto factor0 = hn::Set(words, 0xD2511F53u), factor2 = hn::Set(words, 0xCD9E8D57u);
    const auto lane = hn::Iota(d, 0), half = hn::Set(d, uint64_t{hn::Lanes(d) / 2});
    const auto even = hn::ShiftRight<1>(lane), odd = hn::Add(even, half);
    const auto counter = hn::Add(hn::Set(d, first), hn::OddEven(odd, even));
    auto c0 = counter, c1 = hn::ShiftRight<32>(counter);
    auto c2 = hn::Set(d, uint64_t{random_.step}), c3 = hn::Set(d, uint64_t{random_.stream});
    HWY_UNROLL(10)
    for (const auto& keys : keys_) {
      const auto a = hn::MulEven(hn::BitCast(words, c0), factor0), b = hn::MulEven(hn::BitCast(words, c2), factor2);
      c0 = hn::Xor3(hn::ShiftRight<32>(b), c1, hn::Load(d, keys[0]));
      c2 = hn::Xor3(hn::ShiftRight<32>(a), c3, hn::Load(d, keys[1]));
      c1 = b;
      c3 = a;
    }
    const auto join = [&](auto first_word, auto second_word) HWY_ATTR {
      const auto spread = hn::DupEven(hn::BitCast(words, second_word));
      return hn::BitCast(d, hn::OddEven(spread, hn::BitCast(words, first_word)));
    };
    const auto c01 = join(c0, c1), c23 = join(c2, c3);
    return {hn::BitCast(words, hn::InterleaveLower(d, c01, c23)), hn::BitCast(words, hn::InterleaveUpper(d, c01, c23))};
  }

  void Store(uint64_t first, uint32_t* to) const {
    const auto [lower, upper] = (*this)(first);
    hn::StoreU(lower, Words(), to);
    hn::StoreU(upper, Words(), to + hn::Lanes(Words()));
  }

 private:
  HWY_ALIGN uint64_t keys_[10][2][hn::MaxLanes(Lanes())];  // broadcast to all lanes once, not in each round
  RandomStream random_;
};

// Keeps an element if its Uniform(i) >= rate, and scales it. Compares both as integers in units of 2^-24: the upper 24
// bits of the random word, and the rate rounded up.
template <class T>
class Dropper {
 public:
  explicit Dropper(double rate)
      : threshold_(static_cast<int32_t>(std::ceil(rate * 0x1p24))), scale_(static_cast<Computed<T>>(1 / (1 - rate))) {}

  template <class Access>
  HWY_INLINE void operator()(Access access, hn::Vec<Words> words, const T* x, T* y) const {
    const hn::RebindToSigned<Words> d;
    const auto kept = hn::Gt(hn::BitCast(d, hn::ShiftRight<8>(words)), hn::Set(d, threshold_ - 1));
    const auto scaled = hn::Mul(access.Load(x), hn::Set(D<T>(), scale_));
    access.Store(hn::IfThenElseZero(hn::RebindMask(D<T>(), kept), scaled), y);
  }
  HWY_INLINE void operator()(const uint32_t* words, int64_t n, const T* x, T* y) const {
    if constexpr (sizeof(Computed<T>) == sizeof(uint32_t)) {
      ForEachVector<T>(
          n, [&](auto access, int64_t i) HWY_ATTR { (*this)(access, hn::LoadU(Words(), words + i), x + i, y + i); });
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = static_cast<int32_t>(words[i] >> 8) >= threshold_ ? x[i] * scale_ : 0;
    }
  }

 private:
  int32_t threshold_;
  Computed<T> scale_;
};

template <class T>
void DropLanes(const RandomStream& random, uint64_t first, double rate, const T* x, T* y, int64_t n) {
  const BlockMaker blocks(random);
  const Dropper<T> drop(rate);
  const int64_t at_once = 2 * static_cast<int64_t>(hn::Lanes(Words()));
  uint32_t words[4 * hn::MaxLanes(Words())];  // room for a vector that begins at any word of the first half
  for (int64_t i = 0; i < n;) {
    const uint64_t element = first + static_cast<uint64_t>(i), block = element / 4;
    const int64_t offset = static_cast<int64_t>(element % 4), count = std::min(at_once - offset, n - i);
    if constexpr (sizeof(Computed<T>) == sizeof(uint32_t)) {
      if (count == at_once) {
        const auto [lower, upper] = blocks(block);
        drop(Full(), lower, x + i, y + i);
        drop(Full(), upper, x + i + at_once / 2, y + i + at_once / 2);
        i += at_once;
        continue;
      }
    }
    blocks.Store(block, words);
    drop(words + offset, count, x + i, y + i);
    i += count;
  }
}

#endif

template <class T>
constexpr SelectKernels<T> kTable = {
    .compare = CompareAs<T>, .select = SelectBy<T>, .first_above = FirstAbove<T>, .drop = DropLanes<T>};
template <>
constexpr SelectKernels<BF16> kTable<BF16> = {
    .compare = CompareAs<BF16>, .select = SelectBy<BF16>, .drop = DropLanes<BF16>};
template <>
constexpr SelectKernels<int32_t> kTable<int32_t> = {
    .compare = CompareAs<int32_t>, .select = SelectBy<int32_t>, .first_above = FirstAbove<int32_t>};
template <>
constexpr SelectKernels<bool> kTable<bool> = {.select = SelectBy<bool>};

const SelectTables* Tables() {
  static constexpr SelectTables kTables = {kTable<float>, kTable<double>, kTable<BF16>, kTable<int32_t>, kTable<bool>};
  return &kTables;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {

HWY_EXPORT(Tables);

const SelectTables& AllSelects() { return *HWY_DYNAMIC_DISPATCH(Tables)(); }

}  // namespace weft
#endif  // HWY_ONCE
