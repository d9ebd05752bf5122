// BlockFormat is the struct for weights in a block format that MultiplyWeightRows uses, as weight_formats-inl.h
// describes. A row of a is rounded to 8 bits, by runs of 32 elements, and the products of a run are added as integers.
// BlockFormats is the list of the formats.
#if defined(WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_BLOCKS_INL_H_
#undef WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_BLOCKS_INL_H_
#else
#define WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_BLOCKS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "hwy/highway.h"
#include "weft/core/block_formats.h"
#include "weft/core/block_layouts.h"
#include "weft/ops/kernels/lanes-inl.h"
#include "weft/ops/kernels/weights/weight_formats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

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
  // The weights' integers are unsigned, so the sums of products begin with -kOffset times the sums of a's q: of whole
  // blocks, or of their first and of their second halves.
  int32_t start[2][kBlocks];
  float scale[kBlocks];
  float sum[kBlocks];  // the sum of the rounded elements, by which minima are multiplied
};

// Adds the lanes of each half of four blocks. Returns four sums of first halves, then four of second halves. Each half
// of a vector has the lanes of one block. `even` has blocks 0 and 2, and `odd` has blocks 1 and 3.
HWY_INLINE __m256i SumsOfHalves(__m512i even, __m512i odd) {
  const __m512i pairs = _mm512_add_epi32(_mm512_unpacklo_epi32(even, odd), _mm512_unpackhi_epi32(even, odd));
  const __m256i low = _mm512_castsi512_si256(pairs), high = _mm512_extracti64x4_epi64(pairs, 1);
  return _mm256_add_epi32(_mm256_unpacklo_epi64(low, high), _mm256_unpackhi_epi64(low, high));
}
HWY_INLINE __m128i AddHalves(__m256i sums) {
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
template <class Format>
HWY_INLINE void QuantizeQuad(const float* a, int64_t elements, QuantizedQuad* quad) {
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
  const __m256i halves = SumsOfHalves(DotOfBytes(none, ones, even), DotOfBytes(none, ones, odd));
  const __m128i sums = AddHalves(halves);
  const __m256i starts = Format::kHalves == 2 ? halves : _mm256_castsi128_si256(sums);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(quad->start),
                      _mm256_mullo_epi32(starts, _mm256_set1_epi32(-Format::kOffset)));
  _mm_store_ps(quad->sum, _mm_mul_ps(_mm_cvtepi32_ps(sums), _mm_load_ps(quad->scale)));
}

// The numbers by which the sums of four neighbouring runs are multiplied. `others` are the minima of formats that have
// minima, and the scales of the second halves of formats that have them.
struct QuadScales {
  __m128 scales, others;
};

// Returns {the even elements, the odd elements}.
HWY_INLINE QuadScales Deinterleave(__m256 pairs) {
  const __m128 low = _mm256_castps256_ps128(pairs), high = _mm256_extractf128_ps(pairs, 1);
  return {_mm_shuffle_ps(low, high, 0x88), _mm_shuffle_ps(low, high, 0xdd)};
}

// Returns the scales of `runs` runs, 1 to 4, from `run` on, and zeros for the others. `run` is a multiple of 4.
template <class Format>
HWY_INLINE QuadScales ScalesOfQuad(const std::byte* row, int64_t run, int64_t runs) {
  const auto at = [&](int64_t i) HWY_ATTR { return Format::BlockOf(row, run + i) + Format::kScaleAt; };
  if constexpr (Format::kHalves == 2) {
    const __m128 unit = _mm_cvtph_ps(_mm_cvtsi32_si128(LoadNumber<uint16_t>(at(0))));
    const std::byte* const units = Format::BlockOf(row, run) + Format::kScalesAt + 2 * Format::RunInBlock(run);
    const __m256i words = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(units)));
    return Deinterleave(_mm256_mul_ps(_mm256_cvtepi32_ps(words), _mm256_broadcastss_ps(unit)));
  } else if constexpr (Format::kRuns > 1) {
    const std::byte* const block = Format::BlockOf(row, run);
    const __m128 units = _mm_cvtph_ps(_mm_cvtsi32_si128(LoadNumber<int32_t>(block + Format::kScaleAt)));
    const auto [scales, minima] = Format::PackedOf(block, static_cast<int64_t>(Format::RunInBlock(run) / 4));
    const auto floats = [](uint32_t bytes) HWY_ATTR {
      return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(static_cast<int32_t>(bytes))));
    };
    const __m128 negative = _mm_xor_ps(_mm_shuffle_ps(units, units, 0x55), _mm_set1_ps(-0.0f));
    return {_mm_mul_ps(floats(scales), _mm_shuffle_ps(units, units, 0)), _mm_mul_ps(floats(minima), negative)};
  } else if constexpr (Format::kHasMinimum) {
    const auto pair = [&](int64_t i) HWY_ATTR { return i < runs ? LoadNumber<int32_t>(at(i)) : 0; };
    return Deinterleave(_mm256_cvtph_ps(_mm_set_epi32(pair(3), pair(2), pair(1), pair(0))));
  } else {
    const auto bits = [&](int64_t i)
                          HWY_ATTR { return i < runs ? uint64_t{LoadNumber<uint16_t>(at(i))} << 16 * i : 0; };
    const uint64_t halves = bits(0) | bits(1) | bits(2) | bits(3);
    return {_mm_cvtph_ps(_mm_cvtsi64_si128(static_cast<int64_t>(halves))), _mm_setzero_ps()};
  }
}

// Block formats with instructions that add the products of four bytes to an i32 lane. A step has four blocks. Let p(i)
// be the sum of the scaled products of blocks i, i + 4, i + 8, ... An element of y is (p(0) + p(2)) + (p(1) + p(3)).
template <class Stored>
struct BlockFormat : AnyFormat<Stored::kDType>, RunsOf<Stored> {
  using Runs = RunsOf<Stored>;
  using Runs::kDType, Runs::kOffset, Runs::kHalves, Runs::kHasMinimum, Runs::Integers, Runs::BlockOf, Runs::RunInBlock;
  static constexpr int kMaxRows = 4;
  using Prepared = QuantizedQuad;
  using Sum = hn::Vec<hn::CappedTag<float, 4>>;
  static int64_t Stride(int64_t inner) { return (BlocksOf(kDType, inner) * Runs::kRuns + 3) / 4; }
  static int64_t StepElements() { return 4 * kBlock; }

  static void Prepare(const float* a, int64_t inner, QuantizedQuad* to) {
    const QuantizedQuad* const end = to + Stride(inner);
    for (; to < end; inner -= StepElements(), a += StepElements()) {
      QuantizeQuad<BlockFormat>(a, std::clamp<int64_t>(inner, 0, StepElements()), to++);
    }
  }
  // The integers of a run of each of two columns, or of two runs of a column.
  static HWY_INLINE __m512i BytesOf(const std::byte* first_row, int64_t first, const std::byte* second_row,
                                    int64_t second) {
    return Integers({BlockOf(first_row, first), BlockOf(second_row, second), RunInBlock(first), RunInBlock(second)})
        .raw;
  }
  // Adds the products of `blocks` blocks, 1 to 4. Missing blocks repeat the elements of the last one, with scale 0.
  template <int kCols, int kRows>
  static HWY_INLINE void Add(const std::byte* const* w, int64_t block, int64_t blocks, const QuantizedQuad* a,
                             int64_t stride, Sum (&sums)[kCols][kRows]) {
    HWY_UNROLL(4)
    for (int j = 0; j < kCols; ++j) {
      const auto at = [&](int64_t i) HWY_ATTR { return block + std::min(i, blocks - 1); };
      const __m512i even = BytesOf(w[j], at(0), w[j], at(2)), odd = BytesOf(w[j], at(1), w[j], at(3));
      const auto [scales, others] = ScalesOfQuad<BlockFormat>(w[j], block, blocks);
      const __m512i zero = _mm512_setzero_si512();
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        const QuantizedQuad& x = a[r * stride + block / 4];
        const __m256i halves = SumsOfHalves(DotOfBytes(zero, even, _mm512_loadu_si512(x.q[0])),
                                            DotOfBytes(zero, odd, _mm512_loadu_si512(x.q[2])));
        const auto add = [&](__m128i products, int half, __m128 factors, __m128 sum) HWY_ATTR {
          const __m128i start = _mm_load_si128(reinterpret_cast<const __m128i*>(x.start[half]));
          if (kOffset != 0) products = _mm_add_epi32(products, start);
          return _mm_fmadd_ps(_mm_cvtepi32_ps(products), _mm_mul_ps(factors, _mm_load_ps(x.scale)), sum);
        };
        __m128 sum = sums[j][r].raw;
        if constexpr (kHalves == 2) {
          sum = add(_mm256_castsi256_si128(halves), 0, scales, sum);
          sum = add(_mm256_extracti128_si256(halves, 1), 1, others, sum);
        } else {
          sum = add(AddHalves(halves), 0, scales, sum);
        }
        if constexpr (kHasMinimum) sum = _mm_fmadd_ps(others, _mm_load_ps(x.sum), sum);
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
struct BlockFormat : AnyFormat<Stored::kDType>, RunsOf<Stored> {
  using Runs = RunsOf<Stored>;
  using Runs::kDType, Runs::kOffset, Runs::kHalves, Runs::kHasMinimum, Runs::Integers, Runs::BlockOf, Runs::RunInBlock;
  static constexpr int kMaxRows = 2;
  using Prepared = QuantizedBlock;
  using D32 = hn::RepartitionToWide<D16>;
  using DSum = hn::Rebind<float, D32>;
  using Sum = hn::Vec<DSum>;
  static int64_t Stride(int64_t inner) { return BlocksOf(kDType, inner) * Runs::kRuns; }
  static int64_t StepElements() { return kBlock; }

  static void Prepare(const float* a, int64_t inner, QuantizedBlock* to) {
    const QuantizedBlock* const end = to + Stride(inner);
    for (; inner >= kBlock; inner -= kBlock, a += kBlock) QuantizeBlock(a, to++);
    for (; to < end; inner = 0) {
      float last[kBlock] = {};
      std::copy_n(a, inner, last);
      QuantizeBlock(last, to++);
    }
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Step(const std::byte* const* w, const QuantizedBlock* a, int64_t stride, int64_t step,
                              Sum (&sums)[kCols][kRows]) {
    const D16 d16;
    const D32 d32;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d16));
    for (int j = 0; j < kCols; ++j) {
      const std::byte* const block = BlockOf(w[j], step);
      const auto run = static_cast<int64_t>(RunInBlock(step));
      const auto half = [](uint16_t bits) HWY_ATTR { return FromHalf(bits); };
      const float minimum = Runs::Minimum(block, run, half);
      for (int r = 0; r < kRows; ++r) {
        const QuantizedBlock& x = a[r * stride + step];
        for (int h = 0; h < kHalves; ++h) {
          auto even = hn::Zero(d32), odd = hn::Zero(d32);
          for (int64_t i = h * Runs::kElements; i < (h + 1) * Runs::kElements; i += lanes) {
            const auto u = Integers({block, i, RunInBlock(step)});
            const auto integers = hn::Sub(hn::PromoteTo(d16, u), hn::Set(d16, kOffset));
            even = hn::ReorderWidenMulAccumulate(d32, integers, hn::LoadU(d16, x.q + i), even, odd);
          }
          const auto product = hn::ConvertTo(DSum(), hn::Add(even, odd));
          const float scale = Runs::Scale(block, run * kHalves + h, half);
          sums[j][r] = hn::MulAdd(product, hn::Set(DSum(), scale * x.scale), sums[j][r]);
        }
        if constexpr (kHasMinimum) {
          const float lane_sum = static_cast<float>(x.sum) * x.scale / static_cast<float>(hn::MaxLanes(DSum()));
          sums[j][r] = hn::MulAdd(hn::Set(DSum(), minimum), hn::Set(DSum(), lane_sum), sums[j][r]);
        }
      }
    }
  }
};

#endif

// Only its type is used.
template <class... Layouts>
std::tuple<BlockFormat<Unpacked<Layouts>>...> FormatsOf(std::tuple<Layouts...>);
using BlockFormats = decltype(FormatsOf(BlockLayouts()));

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
