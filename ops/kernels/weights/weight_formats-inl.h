// MultiplyWeightRows (weight_rows.h) uses a struct for each format of weights. `Prepare` brings a row of a to the form
// that the products need. `Step` multiplies StepElements() elements of kCols rows of W by those of kRows rows of a, and
// adds the products to `sums`. `Rest` does the same for the elements at the end of the rows, which are fewer than a
// step takes. kMaxRows is the largest kRows for which the sums fit into registers. kPrefetchDistance is the number of
// bytes by which a single row of a prefetches W if it reads one row of W after the other, or 0 if the CPU's own
// prefetching is as fast.
#if defined(WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_FORMATS_INL_H_
#undef WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_FORMATS_INL_H_
#else
#define WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_FORMATS_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "weft/core/block_formats.h"
#include "weft/core/block_layouts.h"
#include "weft/ops/kernels/lanes-inl.h"
#include "weft/ops/kernels/weights/weight_rows.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

// Vector registers on which kernels may rely: 32 with AVX-512, otherwise 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif

// Begins to read the cache line at `bytes` into the L2 cache. Any address is allowed.
HWY_INLINE void Prefetch(const std::byte* bytes) { __builtin_prefetch(bytes, /*rw=*/0, /*locality=*/2); }

// Begins to read [rows, cols] elements, whose rows are `stride` elements apart, so that writing them does not wait. Any
// address is allowed.
HWY_INLINE void PrefetchOutput(float* y, int64_t rows, int64_t cols, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < cols; j += 16) __builtin_prefetch(y + r * stride + j, /*rw=*/1);
  }
}

// Returns `v`. If several columns use it, keeps the compiler from loading it again for each of them, because a CPU
// loads no more vectors in a cycle than it multiplies.
template <int kCols, class V>
HWY_INLINE V InRegister(V v) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  if constexpr (kCols > 1) asm("" : "+v"(v.raw));
#endif
  return v;
}

// Calls function(i) for i = 0 .. kCount - 1, where i is a constant of the compiler. Arrays of sums that are indexed by
// such constants stay in registers, if the function is a lambda that is always inlined.
template <int kCount, class Function>
HWY_INLINE void Unrolled(const Function& function) {
  if constexpr (kCount > 0) {
    Unrolled<kCount - 1>(function);
    function(std::integral_constant<int, kCount - 1>());
  }
}

// Holds defaults. A format hides a default by a member of the same name. This Rest is for rows of whole steps.
template <DType kFormat>
struct AnyFormat {
  static constexpr DType kDType = kFormat;
  static constexpr int64_t kPrefetchDistance = 8 << 10;  // on Zen 5, 1 or 2 KB gain nothing, and 16 KB is no faster
  static int64_t RowBytes(int64_t inner) { return static_cast<int64_t>(BytesOf(kFormat, inner)); }
  template <int kCols, int kRows, class... Arguments>
  static HWY_INLINE void Rest(const Arguments&...) {}
};

// f32 and f16. A row of a is used as it is. A step has one vector of elements.
template <DType kFormat>
struct FloatFormat : AnyFormat<kFormat> {
  static constexpr int kMaxRows = kRegisters == 32 ? 6 : 2;
  static constexpr int64_t kPrefetchDistance = 0;
  using Prepared = float;
  using Sum = V<float>;
  static int64_t Stride(int64_t inner) { return inner; }
  static int64_t StepElements() { return static_cast<int64_t>(hn::Lanes(D<float>())); }

  template <int kCols, int kRows>
  static HWY_INLINE void Step(const std::byte* const* w, const float* a, int64_t stride, int64_t step,
                              Sum (&sums)[kCols][kRows]) {
    Add<kCols, kRows>(Full(), w, a, stride, step * StepElements(), sums);
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Rest(const std::byte* const* w, const float* a, int64_t stride, int64_t inner,
                              Sum (&sums)[kCols][kRows]) {
    const int64_t k = inner / StepElements() * StepElements();
    if (k < inner) Add<kCols, kRows>(Partial{static_cast<size_t>(inner - k)}, w, a, stride, k, sums);
  }
  template <class Access>
  static HWY_INLINE V<float> Load(const Access& access, const std::byte* w, int64_t k) {
    if constexpr (kFormat == kF32) {
      return access.Load(reinterpret_cast<const float*>(w) + k);
    } else {
      const hn::Rebind<hwy::float16_t, D<float>> halves;
      const std::byte* from = w + 2 * k;
      alignas(16) std::byte last[2 * hn::MaxLanes(D<float>())] = {};
      if constexpr (std::is_same_v<Access, Partial>) {
        std::memcpy(last, from, 2 * access.n);
        from = last;
      }
      return hn::PromoteTo(D<float>(), hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from)));
    }
  }
  template <int kCols, int kRows, class Access>
  static HWY_INLINE void Add(const Access& access, const std::byte* const* w, const float* a, int64_t stride, int64_t k,
                             Sum (&sums)[kCols][kRows]) {
    V<float> x[kRows];
    Unrolled<kRows>([&](auto r) HWY_ATTR
                    __attribute__((always_inline)) { x[r] = InRegister<kCols>(access.Load(a + r * stride + k)); });
    Unrolled<kCols>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
      const V<float> weights = Load(access, w[j], k);
      Unrolled<kRows>([&](auto r) HWY_ATTR
                      __attribute__((always_inline)) { sums[j][r] = hn::MulAdd(weights, x[r], sums[j][r]); });
    });
  }
};

// bf16. A 32-bit word holds two neighbours, so a step has a vector of words. A row of a is prepared as all elements
// with even index of a step, then all with odd index.
struct BF16Format : AnyFormat<kBF16> {
  static constexpr int kMaxRows = kRegisters == 32 ? 4 : 2;
  using Prepared = float;
  using Sum = V<float>;
  static int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(D<float>())); }
  static int64_t StepElements() { return 2 * Lanes(); }
  static int64_t Stride(int64_t inner) { return (inner + StepElements() - 1) / StepElements() * StepElements(); }

  static void Prepare(const float* a, int64_t inner, float* to) {
    const D<float> d;
    V<float> even, odd;
    for (; inner >= StepElements(); inner -= StepElements(), a += StepElements(), to += StepElements()) {
      hn::LoadInterleaved2(d, a, even, odd);
      hn::StoreU(even, d, to);
      hn::StoreU(odd, d, to + Lanes());
    }
    if (inner == 0) return;
    for (int64_t i = 0; i < StepElements(); ++i) to[i % 2 * Lanes() + i / 2] = i < inner ? a[i] : 0;
  }
  // Multiplies a step that begins with the last elements of the rows, and ends with zeros.
  template <int kCols, int kRows>
  static HWY_INLINE void Rest(const std::byte* const* w, const float* a, int64_t stride, int64_t inner,
                              Sum (&sums)[kCols][kRows]) {
    const int64_t k = inner / StepElements() * StepElements();
    if (k == inner) return;
    uint16_t ends[kCols][2 * hn::MaxLanes(D<float>())] = {};
    const std::byte* rows[kCols];
    for (int j = 0; j < kCols; ++j) {
      std::memcpy(ends[j], w[j] + k * static_cast<int64_t>(sizeof(uint16_t)),
                  static_cast<size_t>(inner - k) * sizeof(uint16_t));
      rows[j] = reinterpret_cast<const std::byte*>(ends[j]);
    }
    Step<kCols, kRows>(rows, a + k, stride, 0, sums);
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Step(const std::byte* const* w, const float* a, int64_t stride, int64_t step,
                              Sum (&sums)[kCols][kRows]) {
    const D<float> d;
    const hn::RebindToUnsigned<D<float>> d32;
    const int64_t k = step * 2 * Lanes();
    hn::Vec<hn::RebindToUnsigned<D<float>>> words[kCols];
    V<float> x[kRows];
    Unrolled<kRows>([&](auto r) HWY_ATTR
                    __attribute__((always_inline)) { x[r] = InRegister<kCols>(hn::LoadU(d, a + r * stride + k)); });
    Unrolled<kCols>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
      words[j] = hn::LoadU(d32, reinterpret_cast<const uint32_t*>(w[j]) + step * Lanes());
      const V<float> even = hn::BitCast(d, hn::ShiftLeft<16>(words[j]));
      Unrolled<kRows>([&](auto r) HWY_ATTR
                      __attribute__((always_inline)) { sums[j][r] = hn::MulAdd(even, x[r], sums[j][r]); });
    });
    Unrolled<kRows>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
      x[r] = InRegister<kCols>(hn::LoadU(d, a + r * stride + k + Lanes()));
    });
    Unrolled<kCols>([&](auto j) HWY_ATTR __attribute__((always_inline)) {
      const V<float> odd = hn::BitCast(d, hn::And(words[j], hn::Set(d32, 0xffff0000u)));
      Unrolled<kRows>([&](auto r) HWY_ATTR
                      __attribute__((always_inline)) { sums[j][r] = hn::MulAdd(odd, x[r], sums[j][r]); });
    });
  }
};

// A format of weights in blocks is a struct that derives from the format's layout (core/block_layouts.h) and unpacks
// its integers. Its function `Integers` is written once for all instruction sets. It returns the integers u of some
// neighbouring elements, which it reads through `Source`.

constexpr int64_t kBlock = 32;  // elements of a run of a row that is multiplied as a whole

// Some bits of a byte: `at` is the byte's offset in a block, and the bits begin at bit `shift`.
struct BitsAt {
  int64_t at, shift;
};

#if HWY_TARGET == HWY_AVX3_DL

// Reads the integers of two runs, side by side. A run is a part of a block, which has kRuns runs. Offsets are in bytes
// of a block.
struct Source {
  const std::byte *first, *second;
  uint64_t first_run = 0, second_run = 0;
  static constexpr hn::Full512<uint8_t> d = {};
  using Bytes = hn::Vec<hn::Full512<uint8_t>>;

  // Returns 32 bytes of each block.
  HWY_INLINE Bytes Load(int64_t at) const {
    const auto load = [at](const std::byte* block)
                          HWY_ATTR { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + at)); };
    return Bytes{_mm512_inserti64x4(_mm512_castsi256_si512(load(first)), load(second), 1)};
  }
  // Returns 4 bits of each element. Byte i has those of element i in its lower half, and of element i + 16 in its upper
  // half.
  HWY_INLINE Bytes Nibbles(int64_t at) const {
    const auto load = [at](const std::byte* block) HWY_ATTR {
      return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + at)));
    };
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(load(first)), load(second), 1);
    const __m512i shifts = _mm512_set_epi64(4, 4, 0, 0, 4, 4, 0, 0);
    return Bytes{_mm512_and_si512(_mm512_srlv_epi64(both, shifts), _mm512_set1_epi8(15))};
  }
  // Returns 16 for each element whose bit is set, otherwise 0.
  HWY_INLINE Bytes FifthBits(int64_t at) const {
    const uint64_t bits = LoadNumber<uint32_t>(first + at) | uint64_t{LoadNumber<uint32_t>(second + at)} << 32;
    return Bytes{_mm512_maskz_set1_epi8(bits, 16)};
  }
  // Returns the bits place(run) of 32 bytes of each run's block, which `mask` then masks.
  template <class Place>
  HWY_INLINE Bytes Bits(char mask, const Place& place) const {
    const BitsAt one = place(first_run), two = place(second_run);
    const auto load = [](const std::byte* from)
                          HWY_ATTR { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); };
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(load(first + one.at)), load(second + two.at), 1);
    const __m512i shifts =
        _mm512_set_epi64(two.shift, two.shift, two.shift, two.shift, one.shift, one.shift, one.shift, one.shift);
    return Bytes{_mm512_and_si512(_mm512_srlv_epi64(both, shifts), _mm512_set1_epi8(mask))};
  }
};

#else

using D16 = hn::CappedTag<int16_t, 16>;

// Reads the integers of elements i, i + 1, ... of a run, which is a part of a block. Offsets are in bytes of a block.
struct Source {
  const std::byte* block;
  int64_t i;
  uint64_t run = 0;
  static constexpr hn::Rebind<uint8_t, D16> d = {};
  using Bytes = hn::Vec<hn::Rebind<uint8_t, D16>>;

  // Returns the bytes of these elements. Each element has one byte.
  HWY_INLINE Bytes Load(int64_t at) const { return hn::LoadU(d, reinterpret_cast<const uint8_t*>(block + at) + i); }
  // Returns 4 bits of each element. Byte i has those of element i in its lower half, and of element i + 16 in its upper
  // half.
  HWY_INLINE Bytes Nibbles(int64_t at) const {
    const Bytes pairs = hn::LoadU(d, reinterpret_cast<const uint8_t*>(block + at) + i % 16);
    return i < 16 ? hn::And(pairs, hn::Set(d, 15)) : hn::ShiftRight<4>(pairs);
  }
  // Returns 16 for each element whose bit is set, otherwise 0.
  HWY_INLINE Bytes FifthBits(int64_t at) const {
    const uint64_t bits = LoadNumber<uint32_t>(block + at) >> i;
    return hn::IfThenElseZero(hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits)), hn::Set(d, 16));
  }
  // Returns the bits place(run) of bytes i, i + 1, ..., which `mask` then masks.
  template <class Place>
  HWY_INLINE Bytes Bits(char mask, const Place& place) const {
    const BitsAt bits = place(run);
    return hn::And(hn::ShiftRightSame(Load(bits.at), static_cast<int>(bits.shift)),
                   hn::Set(d, static_cast<uint8_t>(mask)));
  }
};

#endif

// A layout with Integers, which returns the integers of the elements that a Source points to.
template <class Layout>
struct Unpacked;
template <>
struct Unpacked<Q8_0Layout> : Q8_0Layout {
  static HWY_INLINE Source::Bytes Integers(const Source& s) {
    return hn::Xor(s.Load(kIntegersAt), hn::Set(s.d, 128));  // adds kOffset
  }
};
template <DType dtype, int kBits, bool has_minimum>
struct Unpacked<NibbleLayout<dtype, kBits, has_minimum>> : NibbleLayout<dtype, kBits, has_minimum> {
  using Layout = NibbleLayout<dtype, kBits, has_minimum>;
  static HWY_INLINE Source::Bytes Integers(const Source& s) {
    const Source::Bytes low = s.Nibbles(Layout::kIntegersAt);
    if constexpr (Layout::kHasHighBits) return hn::Or(low, s.FifthBits(Layout::kHighBitsAt));
    return low;
  }
};
template <DType dtype, int kBits>
struct Unpacked<PairedLayout<dtype, kBits>> : PairedLayout<dtype, kBits> {
  using Layout = PairedLayout<dtype, kBits>;
  static HWY_INLINE Source::Bytes Integers(const Source& s) {
    const auto low = [](int64_t run) { return BitsAt{Layout::kIntegersAt + run / 2 * kBlock, run % 2 * 4}; };
    if constexpr (!Layout::kHasHighBits) return s.Bits(15, low);
    const auto high = [](int64_t run) { return BitsAt{Layout::kHighBitsAt, run}; };
    return hn::Or(s.Bits(15, low), hn::ShiftLeft<4>(s.Bits(1, high)));
  }
};
template <>
struct Unpacked<Q6_KLayout> : Q6_KLayout {
  static HWY_INLINE Source::Bytes Integers(const Source& s) {
    const auto low = [](int64_t run) { return BitsAt{run / 4 * 64 + run % 2 * kBlock, run / 2 % 2 * 4}; };
    const auto high = [](int64_t run) { return BitsAt{kHighBitsAt + run / 4 * kBlock, run % 4 * 2}; };
    return hn::Or(s.Bits(15, low), hn::ShiftLeft<4>(s.Bits(3, high)));
  }
};

// The constants that kernels need of a layout. A run is 32 elements that have one scale, or one for each half.
template <class Layout>
struct RunsOf : Layout {
  static constexpr int64_t kBytes = static_cast<int64_t>(RowOf(Layout::kDType).bytes);
  static constexpr int64_t kRuns = RowOf(Layout::kDType).block / kBlock;  // of a block
  static constexpr int kHalves = static_cast<int>(kBlock / Layout::kElements);
  static_assert(kHalves == 1 || (kHalves == 2 && !Layout::kHasMinimum));
  static const std::byte* BlockOf(const std::byte* row, int64_t run) { return row + run / kRuns * kBytes; }
  static uint64_t RunInBlock(int64_t run) { return static_cast<uint64_t>(run) % kRuns; }
};

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
