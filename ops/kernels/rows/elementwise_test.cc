#include "weft/ops/kernels/rows/elementwise.h"

#include <cmath>
#include <limits>
#include <utility>

#include "gtest/gtest.h"

namespace weft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ConvertToTest, RoundsToBf16Once) {
  constexpr std::pair<double, double> kRows[] = {
      {1, 1},
      {1 + 0x1p-8, 1},  // a tie rounds to even
      {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7},
      {1 + 0x1p-8 - 0x1p-40, 1},
      {1 + 3 * 0x1p-8, 1 + 0x1p-6},
      {1 + 3 * 0x1p-8 - 0x1p-40, 1 + 0x1p-7},
      {-1 - 0x1p-8 - 0x1p-40, -1 - 0x1p-7},
      {1e-50, 0},                       // smaller than any f32
      {0x1p-134 + 0x1p-160, 0x1p-133},  // the smallest bf16
      {-0x1p-134, -0.0},
      {0x1.fep127, 0x1.fep127},
      {0x1.fefffffffp127, 0x1.fep127},
      {0x1.ffp127, kInf},
      {-1e300, -kInf},
      {kInf, kInf},
  };
  for (const auto& [x, wanted] : kRows) {
    const float got = ConvertTo<BF16>(x);
    EXPECT_EQ(got, wanted) << x;
    EXPECT_EQ(std::signbit(got), std::signbit(x)) << x;
  }
  EXPECT_TRUE(std::isnan(ConvertTo<BF16>(kNan)));
  // The last bit would be lost in f32.
  EXPECT_EQ(float{ConvertTo<BF16>(int32_t{(1 << 30) + (1 << 22) + 1})}, 0x1.02p30f);
}

TEST(ConvertToTest, TruncatesAndSaturates) {
  constexpr std::pair<double, int32_t> kRows[] = {
      {2.9, 2}, {-2.9, -2}, {1e10, 2147483647}, {-kInf, -2147483647 - 1}, {kNan, 0}};
  for (const auto& [x, wanted] : kRows) EXPECT_EQ(ConvertTo<int32_t>(x), wanted) << x;
  EXPECT_TRUE(ConvertTo<bool>(kNan));
  EXPECT_FALSE(ConvertTo<bool>(-0.0));
}

}  // namespace
}  // namespace weft
