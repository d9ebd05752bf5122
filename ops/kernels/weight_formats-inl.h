// MultiplyWeightRows (weight_rows.h) uses a struct for each format of weights. `Prepare` brings a row of a to the form
// that the products need. `Step` multiplies a few elements of kCols rows of W by those of kRows rows of a, and adds the
// products to `sums`. `Rest` does the same for the elements at the end of the rows, which are fewer than a step takes.
// kMaxRows is the largest kRows for which the sums fit into registers. This header is included once for each
// instruction set, as lanes-inl.h is.
#if defined(WEFT_OPS_KERNELS_WEIGHT_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_WEIGHT_FORMATS_INL_H_
#undef WEFT_OPS_KERNELS_WEIGHT_FORMATS_INL_H_
#else
#define WEFT_OPS_KERNELS_WEIGHT_FORMATS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "weft/core/block_formats.h"
#include "weft/ops/kernels/lanes-inl.h"
#include "weft/ops/kernels/weight_rows.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

// Vector registers on which kernels may rely: 32 with AVX-512, otherwise 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif

// Returns `v`. If several columns use it, keeps the compiler from loading it again for each of them, because a CPU
// loads no more vectors in a cycle than it multiplies.
template <int kCols, class V>
HWY_INLINE V InRegister(V v) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  if constexpr (kCols > 1) asm("" : "+v"(v.raw));
#endif
  return v;
}

// f32. A row of a is used as it is. A step has one vector of elements.
struct F32Format {
  static constexpr int kMaxRows = kRegisters == 32 ? 6 : 2;
  using Prepared = float;
  using Sum = V<float>;
  static int64_t Stride(int64_t inner) { return inner; }
  static int64_t RowBytes(int64_t inner) { return inner * static_cast<int64_t>(sizeof(float)); }
  static int64_t Steps(int64_t inner) { return inner / static_cast<int64_t>(hn::Lanes(D<float>())); }
  static int64_t StepBytes() { return static_cast<int64_t>(hn::Lanes(D<float>()) * sizeof(float)); }

  template <int kCols, int kRows>
  static HWY_INLINE void Step(const std::byte* const* w, const float* a, int64_t stride, int64_t step,
                              Sum (&sums)[kCols][kRows]) {
    const int64_t k = step * static_cast<int64_t>(hn::Lanes(D<float>()));
    const Full access;
    Add<kCols, kRows>(access, w, a, stride, k, sums);
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Rest(const std::byte* const* w, const float* a, int64_t stride, int64_t inner,
                              Sum (&sums)[kCols][kRows]) {
    const int64_t k = Steps(inner) * static_cast<int64_t>(hn::Lanes(D<float>()));
    if (k < inner) Add<kCols, kRows>(Partial{static_cast<size_t>(inner - k)}, w, a, stride, k, sums);
  }
  template <int kCols, int kRows, class Access>
  static HWY_INLINE void Add(const Access& access, const std::byte* const* w, const float* a, int64_t stride, int64_t k,
                             Sum (&sums)[kCols][kRows]) {
    V<float> x[kRows];
    HWY_UNROLL(6)
    for (int r = 0; r < kRows; ++r) x[r] = InRegister<kCols>(access.Load(a + r * stride + k));
    HWY_UNROLL(4)
    for (int j = 0; j < kCols; ++j) {
      const V<float> weights = access.Load(reinterpret_cast<const float*>(w[j]) + k);
      HWY_UNROLL(6)
      for (int r = 0; r < kRows; ++r) sums[j][r] = hn::MulAdd(weights, x[r], sums[j][r]);
    }
  }
};

// bf16. A 32-bit word holds two neighbours, so a step has a vector of words. A row of a is prepared as all elements
// with even index of a step, then all with odd index.
struct BF16Format {
  static constexpr int kMaxRows = kRegisters == 32 ? 4 : 2;
  using Prepared = float;
  using Sum = V<float>;
  static int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(D<float>())); }
  static int64_t Stride(int64_t inner) { return inner; }
  static int64_t RowBytes(int64_t inner) { return inner * static_cast<int64_t>(sizeof(BF16)); }
  static int64_t Steps(int64_t inner) { return inner / (2 * Lanes()); }
  static int64_t StepBytes() { return 2 * Lanes() * static_cast<int64_t>(sizeof(BF16)); }

  static void Prepare(const float* a, int64_t inner, float* to) {
    for (int64_t k = 0; k < inner; k += 2 * Lanes()) {
      for (int64_t i = 0; i < Lanes(); ++i) {
        to[k + i] = a[k + 2 * i];
        to[k + Lanes() + i] = a[k + 2 * i + 1];
      }
    }
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Step(const std::byte* const* w, const float* a, int64_t stride, int64_t step,
                              Sum (&sums)[kCols][kRows]) {
    const D<float> d;
    const hn::RebindToUnsigned<D<float>> d32;
    const int64_t k = step * 2 * Lanes();
    V<float> even[kRows], odd[kRows];
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      even[r] = InRegister<kCols>(hn::LoadU(d, a + r * stride + k));
    }
    hn::Vec<hn::RebindToUnsigned<D<float>>> words[kCols];
    HWY_UNROLL(4)
    for (int j = 0; j < kCols; ++j) {
      words[j] = hn::LoadU(d32, reinterpret_cast<const uint32_t*>(w[j]) + step * Lanes());
      const V<float> low = hn::BitCast(d, hn::ShiftLeft<16>(words[j]));
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) sums[j][r] = hn::MulAdd(low, even[r], sums[j][r]);
    }
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      odd[r] = InRegister<kCols>(hn::LoadU(d, a + r * stride + k + Lanes()));
    }
    HWY_UNROLL(4)
    for (int j = 0; j < kCols; ++j) {
      const V<float> high = hn::BitCast(d, hn::And(words[j], hn::Set(d32, 0xffff0000u)));
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) sums[j][r] = hn::MulAdd(high, odd[r], sums[j][r]);
    }
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Rest(const std::byte* const*, const float*, int64_t, int64_t, Sum (&)[kCols][kRows]) {}
};

#if HWY_TARGET == HWY_AVX3_DL
#define WEFT_BYTE_PRODUCTS 1
#else
#define WEFT_BYTE_PRODUCTS 0
#endif

#if WEFT_BYTE_PRODUCTS

// Adds the products of four bytes to each lane. This is the instruction of AVX-512. The intrinsic would be that of
// AVX-VNNI, which Highway names among the features of AVX3_DL, but which some of these CPUs lack.
HWY_INLINE __m256i DotOfBytes(__m256i sums, __m256i is_unsigned, __m256i is_signed) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(is_unsigned), "v"(is_signed));
  return sums;
}

// Two neighbouring blocks of a row of a, in 8 bits. The lower halves of all vectors belong to the first block.
struct QuantizedPair {
  alignas(32) int8_t low[32], high[32];  // elements 0 .. 15 of each block, and elements 16 .. 31
  // The weights' bytes are unsigned, q + kOffset, so the sums of products begin with -kOffset times the sums of a's q.
  int32_t start[8];
  float scale[8];
};

static_assert(sizeof(QuantizedPair) <= kPreparedPair);

// Rounds elements of a block of a to 8 bits. Sets `q` to the elements, and returns the scale.
HWY_INLINE float QuantizeBlock(const float* a, __m128i q[2]) {
  const __m512 x = _mm512_loadu_ps(a), y = _mm512_loadu_ps(a + 16);
  const float largest = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(x), _mm512_abs_ps(y)));
  const __m512 inverse = _mm512_set1_ps(largest > 0 ? 127 / largest : 0);
  q[0] = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(x, inverse)));
  q[1] = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(y, inverse)));
  return largest / 127;
}

// Rounds one or two blocks of a to 8 bits. A second block that does not exist becomes zeros.
void QuantizePair(const float* a, bool second, int offset, QuantizedPair* pair) {
  __m128i first_q[2], second_q[2] = {_mm_setzero_si128(), _mm_setzero_si128()};
  const float first_scale = QuantizeBlock(a, first_q);
  const float second_scale = second ? QuantizeBlock(a + kBlockElements, second_q) : 0;
  const __m256i low = _mm256_set_m128i(second_q[0], first_q[0]), high = _mm256_set_m128i(second_q[1], first_q[1]);
  const __m256i ones = _mm256_set1_epi8(1);
  const __m256i sums = DotOfBytes(DotOfBytes(_mm256_setzero_si256(), ones, low), ones, high);
  _mm256_store_si256(reinterpret_cast<__m256i*>(pair->low), low);
  _mm256_store_si256(reinterpret_cast<__m256i*>(pair->high), high);
  _mm256_store_si256(reinterpret_cast<__m256i*>(pair->start), _mm256_mullo_epi32(sums, _mm256_set1_epi32(-offset)));
  _mm256_store_ps(pair->scale, _mm256_set_m128(_mm_set1_ps(second_scale), _mm_set1_ps(first_scale)));
}

// Q8_0 and Q4_0 with instructions that add the products of four bytes to an i32 lane. A step has two blocks. Each has
// half of the lanes, so that one multiplication scales both.
template <DType kFormat>
struct BlockFormat {
  static constexpr int kMaxRows = 4;
  using Prepared = QuantizedPair;
  using Sum = hn::Vec<hn::CappedTag<float, 8>>;
  static constexpr int64_t kBytes = static_cast<int64_t>(BlockBytes(kFormat));
  static constexpr int kOffset = kFormat == kQ8_0 ? 128 : 8;
  static int64_t Stride(int64_t inner) { return (inner / kBlockElements + 1) / 2; }
  static int64_t RowBytes(int64_t inner) { return inner / kBlockElements * kBytes; }
  static int64_t Steps(int64_t inner) { return inner / kBlockElements / 2; }
  static int64_t StepBytes() { return 2 * kBytes; }

  static void Prepare(const float* a, int64_t inner, QuantizedPair* to) {
    for (int64_t k = 0; k < inner; k += 2 * kBlockElements)
      QuantizePair(a + k, k + kBlockElements < inner, kOffset, to++);
  }
  // Returns 16 bytes of each block, from the byte `i` of its elements on.
  static HWY_INLINE __m256i Bytes(const std::byte* first, const std::byte* second, int i) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + 2 + i));
    const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(second + 2 + i));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(x), y, 1);
  }
  // Returns the scales of two blocks, each in four lanes.
  static HWY_INLINE __m256 Scales(const std::byte* first, const std::byte* second) {
    uint16_t x, y;
    std::memcpy(&x, first, sizeof(x));
    std::memcpy(&y, second, sizeof(y));
    const __m128i both = _mm_cvtsi32_si128(static_cast<int>(x | static_cast<uint32_t>(y) << 16));
    const __m128i order = _mm_set_epi8(3, 2, 3, 2, 3, 2, 3, 2, 1, 0, 1, 0, 1, 0, 1, 0);
    return _mm256_cvtph_ps(_mm_shuffle_epi8(both, order));
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Add(const std::byte* const* w, int64_t block, int64_t to_second, const QuantizedPair* a,
                             int64_t stride, Sum (&sums)[kCols][kRows]) {
    HWY_UNROLL(4)
    for (int j = 0; j < kCols; ++j) {
      const std::byte *const first = w[j] + block * kBytes, *const second = first + to_second;
      const __m256 scales = Scales(first, second);
      __m256i low, high;
      if constexpr (kFormat == kQ8_0) {
        const __m256i sign = _mm256_set1_epi8(-128);
        low = _mm256_xor_si256(Bytes(first, second, 0), sign);
        high = _mm256_xor_si256(Bytes(first, second, 16), sign);
      } else {
        const __m256i pairs = Bytes(first, second, 0), mask = _mm256_set1_epi8(15);
        low = _mm256_and_si256(pairs, mask);
        high = _mm256_and_si256(_mm256_srli_epi16(pairs, 4), mask);
      }
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        const QuantizedPair& x = a[r * stride + block / 2];
        const auto load = [](const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); };
        const __m256i products = DotOfBytes(DotOfBytes(load(x.start), low, load(x.low)), high, load(x.high));
        const __m256 factors = _mm256_mul_ps(scales, _mm256_load_ps(x.scale));
        sums[j][r] = Sum{_mm256_fmadd_ps(_mm256_cvtepi32_ps(products), factors, sums[j][r].raw)};
      }
    }
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Step(const std::byte* const* w, const QuantizedPair* a, int64_t stride, int64_t step,
                              Sum (&sums)[kCols][kRows]) {
    Add<kCols, kRows>(w, 2 * step, kBytes, a, stride, sums);
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Rest(const std::byte* const* w, const QuantizedPair* a, int64_t stride, int64_t inner,
                              Sum (&sums)[kCols][kRows]) {
    const int64_t blocks = inner / kBlockElements;  // the zeros of a's last pair multiply the last block once more
    if (blocks % 2 == 1) Add<kCols, kRows>(w, blocks - 1, 0, a, stride, sums);
  }
};

#else

// A block of a row of a, in 8 bits: element k is scale · q[k].
struct QuantizedBlock {
  int16_t q[kBlockElements];
  float scale;
};

static_assert(2 * sizeof(QuantizedBlock) <= kPreparedPair);

// Returns the scale of a block of weights.
HWY_INLINE float ScaleOf(const std::byte* block) {
  uint16_t half;
  std::memcpy(&half, block, sizeof(half));
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return _cvtsh_ss(half);
#else
  return FromHalfBits(half);
#endif
}

// Rounds a block of a to 8 bits.
void QuantizeBlock(const float* a, QuantizedBlock* block) {
  const D<float> d;
  const hn::Rebind<int16_t, D<float>> d16;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V<float> most = hn::Zero(d);
  for (int64_t k = 0; k < kBlockElements; k += lanes) most = hn::Max(most, hn::Abs(hn::LoadU(d, a + k)));
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  block->scale = largest / 127;
  const V<float> inverse = hn::Set(d, largest > 0 ? 127 / largest : 0);
  for (int64_t k = 0; k < kBlockElements; k += lanes) {
    hn::StoreU(hn::DemoteTo(d16, hn::NearestInt(hn::Mul(hn::LoadU(d, a + k), inverse))), d16, block->q + k);
  }
}

// Q8_0 and Q4_0 with products of 16-bit integers, which every instruction set has.
template <DType kFormat>
struct BlockFormat {
  static constexpr int kMaxRows = 2;
  using Prepared = QuantizedBlock;
  using D16 = hn::CappedTag<int16_t, 16>;
  using D32 = hn::RepartitionToWide<D16>;
  using DSum = hn::Rebind<float, D32>;
  using Sum = hn::Vec<DSum>;
  static constexpr int64_t kBytes = static_cast<int64_t>(BlockBytes(kFormat));
  static int64_t Stride(int64_t inner) { return inner / kBlockElements; }
  static int64_t RowBytes(int64_t inner) { return inner / kBlockElements * kBytes; }
  static int64_t Steps(int64_t inner) { return inner / kBlockElements; }
  static int64_t StepBytes() { return kBytes; }

  static void Prepare(const float* a, int64_t inner, QuantizedBlock* to) {
    for (int64_t k = 0; k < inner; k += kBlockElements) QuantizeBlock(a + k, to++);
  }
  // Returns the integers of elements i, i + 1, ...
  static HWY_INLINE hn::Vec<D16> Integers(const std::byte* block, int64_t i) {
    const D16 d16;
    if constexpr (kFormat == kQ8_0) {
      const auto bytes = hn::LoadU(hn::Rebind<int8_t, D16>(), reinterpret_cast<const int8_t*>(block + 2) + i);
      return hn::PromoteTo(d16, bytes);
    } else {
      const auto pairs = hn::LoadU(hn::Rebind<uint8_t, D16>(), reinterpret_cast<const uint8_t*>(block + 2) + i % 16);
      const auto words = hn::PromoteTo(d16, pairs);
      const auto bits = i < 16 ? hn::And(words, hn::Set(d16, 15)) : hn::ShiftRight<4>(words);
      return hn::Sub(bits, hn::Set(d16, 8));
    }
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Step(const std::byte* const* w, const QuantizedBlock* a, int64_t stride, int64_t step,
                              Sum (&sums)[kCols][kRows]) {
    const D16 d16;
    const D32 d32;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d16));
    for (int j = 0; j < kCols; ++j) {
      const std::byte* const block = w[j] + step * kBytes;
      const float scale = ScaleOf(block);
      for (int r = 0; r < kRows; ++r) {
        const QuantizedBlock& x = a[r * stride + step];
        auto even = hn::Zero(d32), odd = hn::Zero(d32);
        for (int64_t i = 0; i < kBlockElements; i += lanes) {
          even = hn::ReorderWidenMulAccumulate(d32, Integers(block, i), hn::LoadU(d16, x.q + i), even, odd);
        }
        const auto product = hn::ConvertTo(DSum(), hn::Add(even, odd));
        sums[j][r] = hn::MulAdd(product, hn::Set(DSum(), scale * x.scale), sums[j][r]);
      }
    }
  }
  template <int kCols, int kRows>
  static HWY_INLINE void Rest(const std::byte* const*, const QuantizedBlock*, int64_t, int64_t, Sum (&)[kCols][kRows]) {
  }
};

#endif
#undef WEFT_BYTE_PRODUCTS

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
