#include "weft/core/block_formats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "weft/base/arena.h"
#include "weft/core/random.h"

namespace weft {
namespace {

std::vector<float> RandomNumbers(int64_t n) {
  const RandomStream random = {.seed = 1};
  std::vector<float> numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(static_cast<float>(random.Uniform(i) + random.Uniform(n + i) - 1));
  return numbers;
}

std::vector<float> There(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> bytes(BytesOf(dtype, static_cast<int64_t>(values.size())));
  EncodeWeight(values, dtype, bytes.data());
  std::vector<float> back(values.size());
  DecodeWeight(dtype, bytes.data(), absl::MakeSpan(back));
  return back;
}

TEST(HalfTest, KnowsIEEE754) {
  EXPECT_EQ(HalfBits(1), 0x3c00);
  EXPECT_EQ(HalfBits(-2), 0xc000);
  EXPECT_EQ(HalfBits(65504), 0x7bff);
  EXPECT_EQ(HalfBits(65519), 0x7bff);
  EXPECT_EQ(HalfBits(65520), 0x7c00);
  EXPECT_EQ(HalfBits(0x1p-24f), 0x0001);
  EXPECT_EQ(HalfBits(0x1p-25f), 0x0000);  // a tie, to even
  EXPECT_EQ(HalfBits(0x1.8p-24f), 0x0002);
  EXPECT_EQ(HalfBits(1 + 0x1p-11f), 0x3c00);  // a tie, to even
  EXPECT_EQ(HalfBits(1 + 0x1.8p-10f), 0x3c02);
}

TEST(HalfTest, EveryNumberComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = FromHalfBits(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_GT(bits & 0x7fff, 0x7c00);
      EXPECT_TRUE(std::isnan(FromHalfBits(HalfBits(value))));
    } else {
      ASSERT_EQ(HalfBits(value), bits);
    }
  }
}

TEST(BlockFormatsTest, ErrorsAreSmall) {
  const std::vector<float> values = RandomNumbers(3200);
  for (size_t i = 0; const float back : There(values, kQ8_0)) EXPECT_NEAR(back, values[i++], 1.0 / 127 * 0.51);
  double squares = 0, errors = 0;
  for (size_t i = 0; const float back : There(values, kQ4_0)) {
    squares += values[i] * values[i];
    errors += (back - values[i]) * (back - values[i]);
    ++i;
  }
  EXPECT_LT(std::sqrt(errors / squares), 0.09);
}

TEST(BlockFormatsTest, StoresIntegersExactly) {
  std::vector<float> bytes, nibbles;
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<float>(4 * (i - 31)) + (i == 0 ? -3 : 0));
  EXPECT_EQ(There(bytes, kQ8_0), bytes);
  for (int i = 0; i < 32; ++i) nibbles.push_back(0.5f * static_cast<float>(i % 16 - 8));
  EXPECT_EQ(There(nibbles, kQ4_0), nibbles);
  EXPECT_EQ(There(std::vector<float>(64, 0), kQ4_0), std::vector<float>(64, 0));
  EXPECT_EQ(There(std::vector<float>(64, 0), kQ8_0), std::vector<float>(64, 0));
}

// The bytes are those of GGUF, so that its files can be read in place.
TEST(BlockFormatsTest, BytesAreThoseOfGguf) {
  std::vector<float> values(32, 0);
  values[0] = -8;
  values[1] = 7;
  values[17] = 3;
  std::vector<uint8_t> q8(34), q4(18);
  EncodeWeight(values, kQ4_0, reinterpret_cast<std::byte*>(q4.data()));
  EXPECT_EQ(q4[0] | q4[1] << 8, 0x3c00);
  EXPECT_EQ(q4[2], 0x80);  // element 0 is -8, element 16 is 0
  EXPECT_EQ(q4[3], 0xbf);  // element 1 is 7, element 17 is 3
  values[0] = 127;
  EncodeWeight(values, kQ8_0, reinterpret_cast<std::byte*>(q8.data()));
  EXPECT_EQ(q8[0] | q8[1] << 8, 0x3c00);
  EXPECT_EQ(q8[2], 127);
  EXPECT_EQ(q8[2 + 17], 3);
}

TEST(BlockFormatsTest, ConvertsBetweenAllFormats) {
  constexpr DType kFormats[] = {kF32, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kF16, kQ4_K, kQ5_K, kQ6_K};
  for (const int64_t width : {6144, 312, 100, 64, 33, 1, 0}) {
    const Shape shape = {3, width};
    Arena arena;
    const auto convert = [&](const Tensor& from, DType to) {
      const TensorType type = {to, shape};
      const Tensor result = {type, arena.Allocate(type.bytes())};
      ConvertWeight(from, result);
      return result;
    };
    const Tensor values = convert({{kF32, shape}, arena.Allocate(static_cast<size_t>(12 * width))}, kF32);
    // The largest number of each block is 7, and each format has steps of at most 1.
    for (int64_t i = 0; i < 3 * width; ++i) {
      values.as<float>()[i] = static_cast<float>(i % width % 32 == 0 ? 7 : i % 15 - 7);
    }
    for (DType from : kFormats) {
      const Tensor stored = convert(values, from);
      for (DType to : kFormats) {
        const Tensor back = convert(convert(stored, to), kF32);
        for (int64_t i = 0; i < 3 * width; ++i) {
          ASSERT_NEAR(back.as<float>()[i], values.as<float>()[i], 0.49)
              << i << " of width " << width << ", " << Name(from) << " " << Name(to);
        }
      }
    }
  }
}

TEST(BlockFormatsTest, EachRowIsWholeBlocksThatEndWithZeros) {
  EXPECT_EQ((TensorType{kQ8_0, {3, 100}}.bytes()), 3 * 4 * 34);
  EXPECT_EQ((TensorType{kQ4_0, {2, 3, 33}}.bytes()), 6 * 2 * 18);
  EXPECT_EQ((TensorType{kQ4_0, {3, 64}}.bytes()), 3 * 2 * 18);
  std::vector<float> row = RandomNumbers(33), padded = row;
  padded.resize(64);
  for (DType dtype : {kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1}) {
    std::vector<std::byte> bytes(BytesOf(dtype, 33), std::byte{77}), wanted(BytesOf(dtype, 64));
    EncodeWeight(row, dtype, bytes.data());
    EncodeWeight(padded, dtype, wanted.data());
    EXPECT_EQ(bytes, wanted) << Name(dtype);
  }
}

TEST(BlockFormatsTest, ANaNSpoilsItsBlockOnly) {
  for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(64, 1);
    values[5] = bad;
    for (DType dtype : {kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1}) {
      const std::vector<float> back = There(values, dtype);
      EXPECT_TRUE(std::isnan(back[0])) << Name(dtype);
      EXPECT_NEAR(back[40], 1, 1e-3);
    }
  }
}

}  // namespace
}  // namespace weft
