// The layouts of block formats (block_formats.h). Formats that are alike share a template. A block has kParts parts of
// kElements elements, each with a scale and, if kHasMinimum, a minimum. An element has an integer u in 0 .. kMax and
// stands for scale · (u - kOffset) + minimum. The structs have functions of a block:
//
//   Scale(block, part, half), Minimum(block, part, half)   half(bits): converts an f16 to a float
//   Get(block, i), Put(block, i, u)                        the integer of element i; Put is for a block of zeros
//   SetScales(block, scales, minima)                       stores the nearest scales and minima that it can
//
// The encoder and decoder of block_formats.cc and the kernels of ops/kernels/weights/weight_blocks-inl.h derive from
// these structs all that they do with a format.
#ifndef WEFT_CORE_BLOCK_LAYOUTS_H_
#define WEFT_CORE_BLOCK_LAYOUTS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>

#include "weft/core/dtype.h"

namespace weft {

// Reads and writes numbers at any address.
template <class T>
T LoadNumber(const std::byte* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}
template <class T>
void StoreNumber(T number, std::byte* bytes) {
  std::memcpy(bytes, &number, sizeof(number));
}

// Q8_0: 34 bytes, d and 32 bytes, each a q in -128 .. 127.
struct Q8_0Layout {
  static constexpr DType kDType = kQ8_0;
  static constexpr int kParts = 1, kElements = 32, kMax = 255, kOffset = 128, kScaleAt = 0, kIntegersAt = 2;
  static constexpr bool kHasMinimum = false;
  template <class Half>
  static float Scale(const std::byte* block, int64_t, const Half& half) {
    return half(LoadNumber<uint16_t>(block));
  }
  template <class Half>
  static float Minimum(const std::byte*, int64_t, const Half&) {
    return 0;
  }
  static int Get(const std::byte* block, int64_t i) { return kOffset + LoadNumber<int8_t>(block + kIntegersAt + i); }
  static void Put(std::byte* block, int64_t i, int u) { block[kIntegersAt + i] = static_cast<std::byte>(u - kOffset); }
  static void SetScales(std::byte* block, const float* scales, const float*) { StoreNumber(HalfBits(*scales), block); }
};

// Q4_0, Q4_1, Q5_0 and Q5_1: d; the minimum m, if the format has one; with 5 bits, 4 bytes, whose bit i is the highest
// bit of element i; then 16 bytes. Byte i holds the low 4 bits of element i in its lower half, and of element i + 16 in
// its upper half.
template <DType dtype, int kBits, bool has_minimum>
struct NibbleLayout {
  static constexpr DType kDType = dtype;
  static constexpr int kParts = 1, kElements = 32, kMax = (1 << kBits) - 1;
  static constexpr int kOffset = has_minimum ? 0 : 1 << (kBits - 1);
  static constexpr bool kHasMinimum = has_minimum, kHasHighBits = kBits == 5;
  static constexpr float kLargestMinimum = std::numeric_limits<float>::infinity();
  static constexpr int kScaleAt = 0, kMinimumAt = 2, kHighBitsAt = has_minimum ? 4 : 2;
  static constexpr int kIntegersAt = kHighBitsAt + (kHasHighBits ? 4 : 0);
  static_assert(RowOf(dtype).bytes == kIntegersAt + 16);

  template <class Half>
  static float Scale(const std::byte* block, int64_t, const Half& half) {
    return half(LoadNumber<uint16_t>(block));
  }
  template <class Half>
  static float Minimum(const std::byte* block, int64_t, const Half& half) {
    return has_minimum ? half(LoadNumber<uint16_t>(block + kMinimumAt)) : 0;
  }
  static int Get(const std::byte* block, int64_t i) {
    const int high = kHasHighBits ? LoadNumber<uint32_t>(block + kHighBitsAt) >> i & 1 : 0;
    return (static_cast<int>(block[kIntegersAt + i % 16]) >> i / 16 * 4 & 15) | high << 4;
  }
  static void Put(std::byte* block, int64_t i, int u) {
    block[kIntegersAt + i % 16] |= static_cast<std::byte>((u & 15) << i / 16 * 4);
    if (kHasHighBits) block[kHighBitsAt + i / 8] |= static_cast<std::byte>(u >> 4 << i % 8);
  }
  static void SetScales(std::byte* block, const float* scales, const float* minima) {
    StoreNumber(HalfBits(*scales), block);
    if (has_minimum) StoreNumber(HalfBits(*minima), block + kMinimumAt);
  }
};

// Q4_K and Q5_K have parts of 32 elements. A block begins with the unit of the scales and the unit of the minima. Then
// 12 bytes hold a scale and a minimum of 6 bits for each part. In Q5_K, 32 bytes follow: byte i holds the highest bit
// of element i of each part. The last 128 bytes hold the low 4 bits: of 32 bytes, the lower halves belong to one part,
// and the upper halves to the next part.
template <DType dtype, int kBits>
struct PairedLayout {
  static constexpr DType kDType = dtype;
  static constexpr int kParts = 8, kElements = 32, kMax = (1 << kBits) - 1, kOffset = 0;
  static constexpr bool kHasMinimum = true, kHasHighBits = kBits == 5;
  static constexpr float kLargestMinimum = 0;  // a block stores -minimum, which is at least 0
  static constexpr int kScaleAt = 0, kMinimumAt = 2, kPackedAt = 4, kHighBitsAt = 16;
  static constexpr int kIntegersAt = kHighBitsAt + (kHasHighBits ? 32 : 0);
  static_assert(RowOf(dtype).bytes == kIntegersAt + 128);

  // The scales and minima of parts 4 · quad .. 4 · quad + 3, in units. Each has a byte.
  struct Packed {
    uint32_t scales, minima;
  };
  static Packed PackedOf(const std::byte* block, int64_t quad) {
    const auto word = [block](int64_t i) { return LoadNumber<uint32_t>(block + kPackedAt + 4 * i); };
    if (quad == 0) return {word(0) & 0x3f3f3f3f, word(1) & 0x3f3f3f3f};
    return {(word(2) & 0x0f0f0f0f) | (word(0) >> 2 & 0x30303030),
            (word(2) >> 4 & 0x0f0f0f0f) | (word(1) >> 2 & 0x30303030)};
  }
  template <class Half>
  static float Scale(const std::byte* block, int64_t part, const Half& half) {
    const uint32_t units = PackedOf(block, part / 4).scales >> part % 4 * 8 & 255;
    return half(LoadNumber<uint16_t>(block)) * static_cast<float>(units);
  }
  template <class Half>
  static float Minimum(const std::byte* block, int64_t part, const Half& half) {
    const uint32_t units = PackedOf(block, part / 4).minima >> part % 4 * 8 & 255;
    return -(half(LoadNumber<uint16_t>(block + kMinimumAt)) * static_cast<float>(units));
  }
  static int Get(const std::byte* block, int64_t i) {
    const int high = kHasHighBits ? static_cast<int>(block[kHighBitsAt + i % 32]) >> i / 32 & 1 : 0;
    return (static_cast<int>(block[kIntegersAt + i / 64 * 32 + i % 32]) >> i / 32 % 2 * 4 & 15) | high << 4;
  }
  static void Put(std::byte* block, int64_t i, int u) {
    block[kIntegersAt + i / 64 * 32 + i % 32] |= static_cast<std::byte>((u & 15) << i / 32 % 2 * 4);
    if (kHasHighBits) block[kHighBitsAt + i % 32] |= static_cast<std::byte>(u >> 4 << i / 32);
  }
  static void SetScales(std::byte* block, const float* scales, const float* minima) {
    float most[2] = {};
    for (int p = 0; p < kParts; ++p) {
      most[0] = std::max(most[0], scales[p]);
      most[1] = std::max(most[1], -minima[p]);
    }
    for (int k = 0; k < 2; ++k) {
      StoreNumber(HalfBits(most[k] / 63), block + 2 * k);
      const float unit = FromHalfBits(LoadNumber<uint16_t>(block + 2 * k));
      for (int p = 0; p < kParts; ++p) {
        const float number = k == 0 ? scales[p] : -minima[p];
        const int units = unit > 0 ? static_cast<int>(std::clamp(number / unit + 0.5f, 0.0f, 63.0f)) : 0;
        std::byte* const packed = block + kPackedAt + p % 4;
        packed[p < 4 ? 4 * k : 8] |= static_cast<std::byte>(p < 4 ? units : (units & 15) << 4 * k);
        if (p >= 4) packed[4 * k] |= static_cast<std::byte>(units >> 4 << 6);
      }
    }
  }
};

// Q6_K: 128 bytes with the low 4 bits, 64 bytes with the high 2 bits, a scale of 8 bits for each 16 elements, and the
// scales' unit. Each half of a block has 64 and 32 of these bytes. Byte i of the 64 has the low bits of elements i and
// i + 64 of the half. Byte i of the 32 has the high bits of elements i, i + 32, i + 64 and i + 96, the first lowest.
struct Q6_KLayout {
  static constexpr DType kDType = kQ6_K;
  static constexpr int kParts = 16, kElements = 16, kMax = 63, kOffset = 32;
  static constexpr bool kHasMinimum = false;
  static constexpr int kHighBitsAt = 128, kScalesAt = 192, kScaleAt = 208;

  template <class Half>
  static float Scale(const std::byte* block, int64_t part, const Half& half) {
    return half(LoadNumber<uint16_t>(block + kScaleAt)) *
           static_cast<float>(LoadNumber<int8_t>(block + kScalesAt + part));
  }
  template <class Half>
  static float Minimum(const std::byte*, int64_t, const Half&) {
    return 0;
  }
  static int Get(const std::byte* block, int64_t i) {
    const int low = static_cast<int>(block[i / 128 * 64 + i % 64]) >> i / 64 % 2 * 4 & 15;
    return low | (static_cast<int>(block[kHighBitsAt + i / 128 * 32 + i % 32]) >> i / 32 % 4 * 2 & 3) << 4;
  }
  static void Put(std::byte* block, int64_t i, int u) {
    block[i / 128 * 64 + i % 64] |= static_cast<std::byte>((u & 15) << i / 64 % 2 * 4);
    block[kHighBitsAt + i / 128 * 32 + i % 32] |= static_cast<std::byte>(u >> 4 << i / 32 % 4 * 2);
  }
  static void SetScales(std::byte* block, const float* scales, const float*) {
    const float extreme =
        *std::max_element(scales, scales + kParts, [](float a, float b) { return std::abs(a) < std::abs(b); });
    StoreNumber(HalfBits(extreme / -128), block + kScaleAt);
    const float unit = FromHalfBits(LoadNumber<uint16_t>(block + kScaleAt));
    for (int p = 0; p < kParts; ++p) {
      const float units = unit != 0 ? std::clamp(std::nearbyint(scales[p] / unit), -128.0f, 127.0f) : 0;
      StoreNumber(static_cast<int8_t>(units), block + kScalesAt + p);
    }
  }
};

// The layouts of all block formats.
using BlockLayouts =
    std::tuple<Q8_0Layout, NibbleLayout<kQ4_0, 4, false>, NibbleLayout<kQ4_1, 4, true>, NibbleLayout<kQ5_0, 5, false>,
               NibbleLayout<kQ5_1, 5, true>, PairedLayout<kQ4_K, 4>, PairedLayout<kQ5_K, 5>, Q6_KLayout>;

}  // namespace weft

#endif  // WEFT_CORE_BLOCK_LAYOUTS_H_
