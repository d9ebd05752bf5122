// The layouts of block formats (block_formats.h): one struct for each format. A block has kParts parts of kElements
// elements, each with a scale and, if kHasMinimum, a minimum. An element has an integer u in 0 .. kMax and stands for
// scale · (u - kOffset) + minimum. The structs have functions of a block:
//
//   Scale(block, part, half), Minimum(block, part, half)   half(bits): converts an f16 to a float
//   Get(block, i), Put(block, i, u)                        the integer of element i; Put is for a block of zeros
//   SetScales(block, scales, minima)                       stores the nearest scales and minima that it can
//
// The encoder and decoder of block_formats.cc and the kernels of ops/kernels/weights/weight_blocks-inl.h derive from
// these structs all that they do with a format.
#ifndef WEFT_CORE_BLOCK_LAYOUTS_H_
#define WEFT_CORE_BLOCK_LAYOUTS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "weft/core/block_formats.h"
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
using Q4_0Layout = NibbleLayout<kQ4_0, 4, false>;
using Q4_1Layout = NibbleLayout<kQ4_1, 4, true>;
using Q5_0Layout = NibbleLayout<kQ5_0, 5, false>;
using Q5_1Layout = NibbleLayout<kQ5_1, 5, true>;

}  // namespace weft

#endif  // WEFT_CORE_BLOCK_LAYOUTS_H_
