#include "weft/core/dtype.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace weft {
namespace {

uint16_t RoundedBits(uint32_t f32_bits) { return BF16(std::bit_cast<float>(f32_bits)).bits; }

TEST(BF16Test, RoundsToNearest) {
  EXPECT_EQ(RoundedBits(0x3f800000), 0x3f80);  // 1
  EXPECT_EQ(RoundedBits(0x3f807fff), 0x3f80);  // just below the middle
  EXPECT_EQ(RoundedBits(0x3f808001), 0x3f81);  // just above it
  EXPECT_EQ(RoundedBits(0xbf808001), 0xbf81);
}

TEST(BF16Test, RoundsTiesToEven) {
  EXPECT_EQ(RoundedBits(0x3f808000), 0x3f80);
  EXPECT_EQ(RoundedBits(0x3f818000), 0x3f82);
  EXPECT_EQ(RoundedBits(0xbf818000), 0xbf82);
}

TEST(BF16Test, KeepsZerosInfinitiesAndSubnormals) {
  EXPECT_EQ(RoundedBits(0x00000000), 0x0000);
  EXPECT_EQ(RoundedBits(0x80000000), 0x8000);
  EXPECT_EQ(RoundedBits(0x7f800000), 0x7f80);
  EXPECT_EQ(RoundedBits(0xff800000), 0xff80);
  EXPECT_EQ(RoundedBits(0x00018000), 0x0002);  // a tie between two subnormals
}

TEST(BF16Test, OverflowsToInfinity) {
  EXPECT_EQ(RoundedBits(0x7f7fffff), 0x7f80);
  EXPECT_EQ(RoundedBits(0x7f7f7fff), 0x7f7f);
}

TEST(BF16Test, NanStaysNan) {
  for (const uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffc00000u, 0x7f80ffffu}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(BF16(std::bit_cast<float>(bits))))) << std::hex << bits;
  }
}

// Every bf16 converts to f32 and back unchanged, except that NaNs become quiet.
TEST(BF16Test, EveryValueComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    BF16 value;
    value.bits = static_cast<uint16_t>(bits);
    const BF16 back(static_cast<float>(value));
    ASSERT_EQ(back.bits, std::isnan(static_cast<float>(value)) ? bits | 0x40u : bits);
  }
}

TEST(DTypeTest, NamesAndSizes) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    DType parsed;
    ASSERT_TRUE(ParseDType(Name(dtype), &parsed));
    EXPECT_EQ(parsed, dtype);
    if (OnlyStoresWeights(dtype)) continue;
    EXPECT_EQ(BytesOf(dtype, 96), 96 * SizeOf(dtype));
    Dispatch(dtype, [&](auto zero) {
      EXPECT_EQ(sizeof(zero), SizeOf(dtype));
      EXPECT_EQ(kDTypeOf<decltype(zero)>, dtype);
    });
  }
  DType parsed = kI32;
  EXPECT_FALSE(ParseDType("f8", &parsed));
  EXPECT_FALSE(ParseDType("", &parsed));
  EXPECT_EQ(parsed, kI32);
}

TEST(DTypeTest, BlockFormatsHaveBytesForBlocks) {
  EXPECT_EQ(BytesOf(kQ8_0, 96), 3 * 34);
  EXPECT_EQ(BytesOf(kQ4_0, 96), 3 * 18);
  EXPECT_EQ(BytesOf(kQ8_0, 97), 4 * 34);
  EXPECT_EQ(BytesOf(kQ4_0, 1), 18);
  EXPECT_EQ(BytesOf(kQ8_0, 0), 0);
}

TEST(DTypeTest, OnlyFloatsAreFloat) {
  EXPECT_TRUE(IsFloat(kF32) && IsFloat(kF64) && IsFloat(kBF16));
  EXPECT_FALSE(IsFloat(kI32) || IsFloat(kBool) || IsFloat(kQ8_0) || IsFloat(kQ4_0));
}

}  // namespace
}  // namespace weft
