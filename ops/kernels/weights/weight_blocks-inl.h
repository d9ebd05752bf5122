// BlockFormat is the struct for weights in a block format that MultiplyWeightRows uses, as weight_formats-inl.h
// describes. A row of a is rounded to 8 bits, by runs of 32 elements, and the products of a run are added as integers.
// A format is a struct that derives from the format's layout (core/block_layouts.h) and unpacks its integers;
// BlockFormats is the list of them. The function `Integers` is written once for all instruction sets. It returns the
// integers u of some neighbouring elements, which it reads through `Source`.
#if defined(WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_BLOCKS_INL_H_
#undef WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_BLOCKS_INL_H_
#else
#define WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_BLOCKS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "hwy/highway.h"
#include "weft/core/block_formats.h"
#include "weft/core/block_layouts.h"
#include "weft/ops/kernels/lanes-inl.h"
#include "weft/ops/kernels/weights/weight_formats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

constexpr int64_t kBlock = 32;  // elements of a run of a row that is multiplied as a whole

#if HWY_TARGET == HWY_AVX3_DL

// Reads the integers of two blocks, side by side. Offsets are in bytes of a block.
struct Source {
  const std::byte *first, *second;
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
};

#else

using D16 = hn::CappedTag<int16_t, 16>;

// Reads the integers of elements i, i + 1, ... of a block. Offsets are in bytes of a block.
struct Source {
  const std::byte* block;
  int64_t i;
  static constexpr hn::Rebind<uint8_t, D16> d = {};
  using Bytes = hn::Vec<hn::Rebind<uint8_t, D16>>;

  // Returns the bytes of these elements, of which each has one.
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
};

#endif

struct Q8_0 : Q8_0Layout {
  static HWY_INLINE Source::Bytes Integers(const Source& s) {
    return hn::Xor(s.Load(kIntegersAt), hn::Set(s.d, 128));  // adds kOffset
  }
};
template <class Layout>
struct Nibbles : Layout {
  static HWY_INLINE Source::Bytes Integers(const Source& s) {
    const Source::Bytes low = s.Nibbles(Layout::kIntegersAt);
    if constexpr (Layout::kHasHighBits) return hn::Or(low, s.FifthBits(Layout::kHighBitsAt));
    return low;
  }
};

#if HWY_TARGET == HWY_AVX3_DL

// Adds the products of four bytes to each lane. The intrinsic of this instruction needs code that is compiled for
// AVX-512 VNNI. Highway compiles AVX3_DL for AVX-VNNI in its place, which some of these CPUs lack.
HWY_INLINE __m512i DotOfBytes(__m512i sums, __m512i is_unsigned, __m512i is_signed) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(is_unsigned), "v"(is_signed));
  return sums;
}

// Four neighbouring blocks of a row of a, in 8 bits. q has blocks 0, 2, 1 and 3, in the order in which they are
// multiplied, and the other arrays have blocks 0, 1, 2 and 3.
struct QuantizedQuad {
  static constexpr int64_t kBlocks = 4;
  // Returns the block at a position of q. The function is its own inverse.
  static constexpr int64_t BlockAt(int64_t position) { return position % 2 * 2 + position / 2; }

  alignas(32) int8_t q[kBlocks][kBlock];
  // The weights' integers are unsigned, so the sums of products begin with -kOffset times the sums of a's q.
  int32_t start[kBlocks];
  float scale[kBlocks];
  float sum[kBlocks];  // the sum of the rounded elements, by which minima are multiplied
};

// Adds all lanes of each of four blocks. Each half of a vector has the lanes of one block. `even` has blocks 0 and 2,
// and `odd` has blocks 1 and 3.
HWY_INLINE __m128i SumsOfBlocks(__m512i even, __m512i odd) {
  const __m512i pairs = _mm512_add_epi32(_mm512_unpacklo_epi32(even, odd), _mm512_unpackhi_epi32(even, odd));
  const __m256i low = _mm512_castsi512_si256(pairs), high = _mm512_extracti64x4_epi64(pairs, 1);
  const __m256i sums = _mm256_add_epi32(_mm256_unpacklo_epi64(low, high), _mm256_unpackhi_epi64(low, high));
  return _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
}

// Returns the maximum of each of four vectors.
HWY_INLINE __m128i MaximaOf(const __m512i (&v)[4]) {
  const __m512i first = _mm512_max_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
  const __m512i second = _mm512_max_epi32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
  const __m512i all = _mm512_max_epi32(_mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second));
  const __m256i half = _mm256_max_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
  return _mm_max_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

// Rounds the first `elements` elements of four blocks of a to 8 bits. The others become zeros. Magnitudes are compared
// as integers, in which a NaN is above every number. The scale of a block with a NaN or an infinity becomes NaN.
HWY_INLINE void QuantizeQuad(const float* a, int64_t elements, int offset, QuantizedQuad* quad) {
  __m512 x[4], y[4];
  __m512i magnitudes[4];
  const auto load = [&](int64_t k) HWY_ATTR {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1 << std::clamp<int64_t>(elements - k, 0, 16)) - 1), a + k);
  };
  HWY_UNROLL(4)
  for (int64_t b = 0; b < 4; ++b) {
    x[b] = load(b * kBlock);
    y[b] = load(b * kBlock + 16);
    magnitudes[b] =
        _mm512_max_epi32(_mm512_castps_si512(_mm512_abs_ps(x[b])), _mm512_castps_si512(_mm512_abs_ps(y[b])));
  }
  const __m128 maxima = _mm_castsi128_ps(MaximaOf(magnitudes)), limit = _mm_set1_ps(127), zero = _mm_setzero_ps();
  _mm_store_ps(quad->scale, _mm_add_ps(_mm_div_ps(maxima, limit), _mm_mul_ps(maxima, zero)));
  const __mmask8 positive = _mm_cmp_ps_mask(maxima, zero, _CMP_GT_OQ);
  const __m512 inverse = _mm512_castps128_ps512(_mm_maskz_div_ps(positive, limit, maxima));
  __m512i words[4];  // 16 bits; each 128 bits have four elements of x, then four of y
  HWY_UNROLL(4)
  for (int b = 0; b < 4; ++b) {
    const __m512 factor = _mm512_permutexvar_ps(_mm512_set1_epi32(b), inverse);
    words[b] = _mm512_packs_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(x[b], factor)),
                                  _mm512_cvtps_epi32(_mm512_mul_ps(y[b], factor)));
  }
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const __m512i even = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(words[0], words[2]));
  const __m512i odd = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(words[1], words[3]));
  _mm512_storeu_si512(quad->q[0], even);
  _mm512_storeu_si512(quad->q[2], odd);
  const __m512i ones = _mm512_set1_epi8(1), none = _mm512_setzero_si512();
  const __m128i sums = SumsOfBlocks(DotOfBytes(none, ones, even), DotOfBytes(none, ones, odd));
  _mm_store_si128(reinterpret_cast<__m128i*>(quad->start), _mm_mullo_epi32(sums, _mm_set1_epi32(-offset)));
  _mm_store_ps(quad->sum, _mm_mul_ps(_mm_cvtepi32_ps(sums), _mm_load_ps(quad->scale)));
}

// The numbers by which the sums of four neighbouring blocks are multiplied. `minima` is for formats that have minima.
struct QuadScales {
  __m128 scales, minima;
};

// Returns the scales and minima of `blocks` blocks, 1 to 4, from `block` on, and zeros for the others.
template <class Layout>
HWY_INLINE QuadScales ScalesOfQuad(const std::byte* row, int64_t block, int64_t blocks) {
  constexpr int64_t kBytes = static_cast<int64_t>(RowOf(Layout::kDType).bytes);
  const auto at = [&](int64_t i) HWY_ATTR { return row + (block + i) * kBytes + Layout::kScaleAt; };
  if constexpr (Layout::kHasMinimum) {
    const auto pair = [&](int64_t i) HWY_ATTR { return i < blocks ? LoadNumber<int32_t>(at(i)) : 0; };
    const __m256 pairs = _mm256_cvtph_ps(_mm_set_epi32(pair(3), pair(2), pair(1), pair(0)));
    const __m128 low = _mm256_castps256_ps128(pairs), high = _mm256_extractf128_ps(pairs, 1);
    return {_mm_shuffle_ps(low, high, 0x88), _mm_shuffle_ps(low, high, 0xdd)};
  } else {
    const auto bits = [&](int64_t i)
                          HWY_ATTR { return i < blocks ? uint64_t{LoadNumber<uint16_t>(at(i))} << 16 * i : 0; };
    const uint64_t halves = bits(0) | bits(1) | bits(2) | bits(3);
    return {_mm_cvtph_ps(_mm_cvtsi64_si128(static_cast<int64_t>(halves))), _mm_setzero_ps()};
  }
}

// Block formats with instructions that add the products of four bytes to an i32 lane. A step has four blocks. Let p(i)
// be the sum of the scaled products of blocks i, i + 4, i + 8, ... An element of y is (p(0) + p(2)) + (p(1) + p(3)).
template <class Stored>
struct BlockFormat : AnyFormat<Stored::kDType>, Stored {
  using Stored::kDType, Stored::kOffset, Stored::Integers;
  static constexpr int kMaxRows = 4;
  using Prepared = QuantizedQuad;
  using Sum = hn::Vec<hn::CappedTag<float, 4>>;
  static constexpr int64_t kBytes = static_cast<int64_t>(RowOf(kDType).bytes);
  static_assert(RowOf(kDType).block == kBlock);
  static int64_t Stride(int64_t inner) { return (BlocksOf(kDType, inner) + 3) / 4; }
  static int64_t StepElements() { return 4 * kBlock; }

  static void Prepare(const float* a, int64_t inner, QuantizedQuad* to) {
    for (; inner >= StepElements(); inner -= StepElements(), a += StepElements()) {
      QuantizeQuad(a, StepElements(), kOffset, to++);
    }
    if (inner > 0) QuantizeQuad(a, inner, kOffset, to);
  }
  // Adds the products of `blocks` blocks, 1 to 4. Missing blocks repeat the elements of the last one, with scale 0.
  template <int kCols, int kRows>
  static HWY_INLINE void Add(const std::byte* const* w, int64_t block, int64_t blocks, const QuantizedQuad* a,
                             int64_t stride, Sum (&sums)[kCols][kRows]) {
    HWY_UNROLL(4)
    for (int j = 0; j < kCols; ++j) {
      const auto at = [&](int64_t i) HWY_ATTR { return w[j] + (block + std::min(i, blocks - 1)) * kBytes; };
      const __m512i even = Integers({at(0), at(2)}).raw, odd = Integers({at(1), at(3)}).raw;
      const auto [scales, minima] = ScalesOfQuad<Stored>(w[j], block, blocks);
      const __m512i zero = _mm512_setzero_si512();
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        const QuantizedQuad& x = a[r * stride + block / 4];
        __m128i products = SumsOfBlocks(DotOfBytes(zero, even, _mm512_loadu_si512(x.q[0])),
                                        DotOfBytes(zero, odd, _mm512_loadu_si512(x.q[2])));
        if constexpr (kOffset != 0) {
          products = _mm_add_epi32(products, _mm_load_si128(reinterpret_cast<const __m128i*>(x.start)));
        }
        const __m128 factors = _mm_mul_ps(scales, _mm_load_ps(x.scale));
        __m128 sum = _mm_fmadd_ps(_mm_cvtepi32_ps(products), factors, sums[j][r].raw);
        if constexpr (Stored::kHasMinimum) sum = _mm_fmadd_ps(minima, _mm_load_ps(x.sum), sum);
        sums[j][r] = Sum{sum};
      }
    }
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Step(const std::byte* const* w, const QuantizedQuad* a, int64_t stride, int64_t step,
                              Sum (&sums)[kCols][kRows]) {
    Add<kCols, kRows>(w, 4 * step, 4, a, stride, sums);
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Rest(const std::byte* const* w, const QuantizedQuad* a, int64_t stride, int64_t inner,
                              Sum (&sums)[kCols][kRows]) {
    const int64_t blocks = inner / kBlock, rest = blocks % 4;
    if (rest > 0) Add<kCols, kRows>(w, blocks - rest, rest, a, stride, sums);
  }
};

#else

// A block of a row of a, in 8 bits: element k is scale · q[k]. `sum` is the sum of q.
struct QuantizedBlock {
  int16_t q[kBlock];
  int32_t sum;
  float scale;
};

HWY_INLINE float FromHalf(uint16_t bits) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return _cvtsh_ss(bits);
#else
  return FromHalfBits(bits);
#endif
}

// Rounds a block of a to 8 bits. Magnitudes are compared as integers, in which a NaN is above every number. The scale
// of a block with a NaN or an infinity becomes NaN.
void QuantizeBlock(const float* a, QuantizedBlock* block) {
  const D<float> d;
  const hn::Rebind<int16_t, D<float>> d16;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const hn::RebindToSigned<D<float>> d32;
  auto maxima = hn::Zero(d32);
  for (int64_t k = 0; k < kBlock; k += lanes) {
    maxima = hn::Max(maxima, hn::BitCast(d32, hn::Abs(hn::LoadU(d, a + k))));
  }
  const float largest = hn::GetLane(hn::BitCast(d, hn::MaxOfLanes(d32, maxima)));
  block->scale = largest / 127 + largest * 0;
  const V<float> inverse = hn::Set(d, largest > 0 ? 127 / largest : 0);
  auto sums = hn::Zero(d32);
  for (int64_t k = 0; k < kBlock; k += lanes) {
    const auto q = hn::NearestInt(hn::Mul(hn::LoadU(d, a + k), inverse));
    hn::StoreU(hn::DemoteTo(d16, q), d16, block->q + k);
    sums = hn::Add(sums, q);
  }
  block->sum = hn::GetLane(hn::SumOfLanes(d32, sums));
}

// Block formats with products of 16-bit integers, which every instruction set has.
template <class Stored>
struct BlockFormat : AnyFormat<Stored::kDType>, Stored {
  using Stored::kDType, Stored::kOffset, Stored::Integers;
  static constexpr int kMaxRows = 2;
  using Prepared = QuantizedBlock;
  using D32 = hn::RepartitionToWide<D16>;
  using DSum = hn::Rebind<float, D32>;
  using Sum = hn::Vec<DSum>;
  static constexpr int64_t kBytes = static_cast<int64_t>(RowOf(kDType).bytes);
  static_assert(RowOf(kDType).block == kBlock);
  static int64_t Stride(int64_t inner) { return BlocksOf(kDType, inner); }
  static int64_t StepElements() { return kBlock; }

  static void Prepare(const float* a, int64_t inner, QuantizedBlock* to) {
    for (; inner >= kBlock; inner -= kBlock, a += kBlock) QuantizeBlock(a, to++);
    if (inner == 0) return;
    float last[kBlock] = {};
    std::copy_n(a, inner, last);
    QuantizeBlock(last, to);
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Step(const std::byte* const* w, const QuantizedBlock* a, int64_t stride, int64_t step,
                              Sum (&sums)[kCols][kRows]) {
    const D16 d16;
    const D32 d32;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d16));
    for (int j = 0; j < kCols; ++j) {
      const std::byte* const block = w[j] + step * kBytes;
      const auto half = [](uint16_t bits) HWY_ATTR { return FromHalf(bits); };
      const float scale = Stored::Scale(block, 0, half), minimum = Stored::Minimum(block, 0, half);
      for (int r = 0; r < kRows; ++r) {
        const QuantizedBlock& x = a[r * stride + step];
        auto even = hn::Zero(d32), odd = hn::Zero(d32);
        for (int64_t i = 0; i < kBlock; i += lanes) {
          const auto integers = hn::Sub(hn::PromoteTo(d16, Integers({block, i})), hn::Set(d16, kOffset));
          even = hn::ReorderWidenMulAccumulate(d32, integers, hn::LoadU(d16, x.q + i), even, odd);
        }
        const auto product = hn::ConvertTo(DSum(), hn::Add(even, odd));
        sums[j][r] = hn::MulAdd(product, hn::Set(DSum(), scale * x.scale), sums[j][r]);
        if constexpr (Stored::kHasMinimum) {
          const float lane_sum = static_cast<float>(x.sum) * x.scale / static_cast<float>(hn::MaxLanes(DSum()));
          sums[j][r] = hn::MulAdd(hn::Set(DSum(), minimum), hn::Set(DSum(), lane_sum), sums[j][r]);
        }
      }
    }
  }
};

#endif

using BlockFormats = std::tuple<BlockFormat<Q8_0>, BlockFormat<Nibbles<Q4_0Layout>>, BlockFormat<Nibbles<Q4_1Layout>>,
                                BlockFormat<Nibbles<Q5_0Layout>>, BlockFormat<Nibbles<Q5_1Layout>>>;

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
