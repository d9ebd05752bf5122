// Compares Exp with std::exp in double, on the instruction set that every CPU of this build has.
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "weft/ops/kernels/exp-inl.h"

namespace weft {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

float Exp(float x) {
  namespace here = HWY_NAMESPACE;
  return here::hn::GetLane(here::Exp<float>(here::hn::Set(here::D<float>(), x)));
}

TEST(ExpTest, IsWithinTwoUlps) {
  for (double x = -86.9799; x <= 88.72; x += 1.0 / 4099) {
    const auto argument = static_cast<float>(x);
    const double wanted = std::exp(static_cast<double>(argument));
    const float rounded = static_cast<float>(wanted);
    const double ulp = static_cast<double>(std::nextafter(rounded, kInf)) - static_cast<double>(rounded);
    ASSERT_LE(std::abs(static_cast<double>(Exp(argument)) - wanted), 2 * ulp) << argument;
  }
}

TEST(ExpTest, Limits) {
  EXPECT_EQ(Exp(0), 1);
  EXPECT_EQ(Exp(-0.0f), 1);
  EXPECT_GT(Exp(-86.98f), 0);
  for (const float x : {-86.981f, -86.99f, -87.0f, -87.1f, -104.0f, -kInf}) EXPECT_EQ(Exp(x), 0) << x;
  for (const float x : {88.73f, 200.0f, kInf}) EXPECT_EQ(Exp(x), kInf) << x;
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace weft
