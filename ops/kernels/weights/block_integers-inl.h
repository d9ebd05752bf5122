// A format of weights in blocks is a struct that derives from the format's layout (core/block_layouts.h) and unpacks
// its integers. Its function `Integers` is written once for all instruction sets. It returns the integers u of some
// neighbouring elements, which it reads through `Source`.
#if defined(WEFT_OPS_KERNELS_WEIGHTS_BLOCK_INTEGERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_WEIGHTS_BLOCK_INTEGERS_INL_H_
#undef WEFT_OPS_KERNELS_WEIGHTS_BLOCK_INTEGERS_INL_H_
#else
#define WEFT_OPS_KERNELS_WEIGHTS_BLOCK_INTEGERS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "weft/core/block_formats.h"
#include "weft/core/block_layouts.h"
#include "weft/ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

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
template <class Layout>
struct Paired : Layout {
  static HWY_INLINE Source::Bytes Integers(const Source& s) {
    const auto low = [](int64_t run) { return BitsAt{Layout::kIntegersAt + run / 2 * kBlock, run % 2 * 4}; };
    if constexpr (!Layout::kHasHighBits) return s.Bits(15, low);
    const auto high = [](int64_t run) { return BitsAt{Layout::kHighBitsAt, run}; };
    return hn::Or(s.Bits(15, low), hn::ShiftLeft<4>(s.Bits(1, high)));
  }
};
struct Q6_K : Q6_KLayout {
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
