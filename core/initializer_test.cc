#include "weft/core/initializer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "weft/base/arena.h"

namespace weft {
namespace {

std::vector<float> Values(const Initializer& initializer, const Shape& shape, uint64_t seed = 1,
                          absl::string_view name = "weight") {
  Arena arena;
  const TensorType type = {kF32, shape};
  const Tensor tensor = {type, arena.Allocate(type.bytes())};
  Initialize(initializer, seed, name, tensor);
  const auto span = tensor.span<float>();
  return {span.begin(), span.end()};
}

struct Moments {
  double mean = 0, deviation = 0, low = 0, high = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments m;
  for (const float x : values) m.mean += x / values.size();
  for (const float x : values) m.deviation += (x - m.mean) * (x - m.mean) / values.size();
  m.deviation = std::sqrt(m.deviation);
  m.low = *std::min_element(values.begin(), values.end());
  m.high = *std::max_element(values.begin(), values.end());
  return m;
}

TEST(InitializerTest, Constants) {
  for (const float x : Values(Ones(), {3, 4})) EXPECT_EQ(x, 1);
  for (const float x : Values(Zeros(), {3, 4})) EXPECT_EQ(x, 0);
}

TEST(InitializerTest, GaussianMoments) {
  const std::vector<float> values = Values(Gaussian(0.5f, 2), {300, 400});
  const Moments m = MomentsOf(values);
  EXPECT_NEAR(m.mean, 2, 0.006);
  EXPECT_NEAR(m.deviation, 0.5, 0.005);
  const auto inside = [](float x) { return std::abs(x - 2) < 0.5f; };
  EXPECT_NEAR(static_cast<double>(std::count_if(values.begin(), values.end(), inside)) / values.size(), 0.6827, 0.006);
}

// Truncation at two deviations leaves 1 - 4 φ(2) / (Φ(2) - Φ(-2)) of a Gaussian's variance.
TEST(InitializerTest, TruncatedGaussianMoments) {
  const Moments m = MomentsOf(Values(TruncatedGaussian(0.5f, 2), {300, 400}));
  EXPECT_NEAR(m.mean, 2, 0.006);
  EXPECT_NEAR(m.deviation, 0.5 * 0.87963, 0.005);
  EXPECT_GE(m.low, 1);
  EXPECT_LE(m.high, 3);
  EXPECT_LT(m.low, 1.001);
  EXPECT_GT(m.high, 2.999);
}

TEST(InitializerTest, OrthogonalMatricesAre) {
  for (const auto& [out, in] : {std::pair<int64_t, int64_t>{40, 70}, {70, 40}, {50, 50}, {1, 9}}) {
    const std::vector<float> w = Values(Orthogonal(2), {out, in});
    const int64_t count = std::min(out, in), size = std::max(out, in);
    for (int64_t a = 0; a < count; ++a) {
      for (int64_t b = 0; b <= a; ++b) {
        double product = 0;
        for (int64_t i = 0; i < size; ++i) {
          const auto at = [&, out = out, in = in](int64_t v) { return out <= in ? w[v * in + i] : w[i * in + v]; };
          product += static_cast<double>(at(a)) * at(b);
        }
        EXPECT_NEAR(product, a == b ? 4 : 0, 1e-5) << out << " by " << in << ": " << a << ", " << b;
      }
    }
  }
  EXPECT_NEAR(MomentsOf(Values(Orthogonal(), {400, 400})).deviation, 1 / 20.0, 0.001);
}

TEST(InitializerTest, UniformMoments) {
  const Moments m = MomentsOf(Values(Uniform(-1, 3), {300, 400}));
  EXPECT_NEAR(m.mean, 1, 0.015);
  EXPECT_NEAR(m.deviation, 4 / std::sqrt(12.0), 0.015);
  EXPECT_GE(m.low, -1);
  EXPECT_LT(m.high, 3);
}

struct FanCase {
  const char* name;
  Initializer initializer;
  double variance;  // for [200, 600]
  bool uniform;
};

TEST(InitializerTest, FanVariances) {
  const FanCase cases[] = {
      {"xavier gaussian", XavierGaussian(), 2.0 / 800, false},
      {"xavier gaussian with gain", XavierGaussian(2), 8.0 / 800, false},
      {"xavier uniform", XavierUniform(), 2.0 / 800, true},
      {"he gaussian", HeGaussian(), 2.0 / 600, false},
      {"he uniform", HeUniform(), 2.0 / 600, true},
      {"lecun gaussian", LeCunGaussian(), 1.0 / 600, false},
      {"lecun uniform", LeCunUniform(), 1.0 / 600, true},
  };
  for (const FanCase& c : cases) {
    SCOPED_TRACE(c.name);
    const Moments m = MomentsOf(Values(c.initializer, {200, 600}));
    const double deviation = std::sqrt(c.variance);
    EXPECT_NEAR(m.mean, 0, 0.01 * deviation * 1.5);
    EXPECT_NEAR(m.deviation, deviation, 0.01 * deviation);
    EXPECT_EQ(m.high < deviation * std::sqrt(3.0), c.uniform);
    EXPECT_GT(m.high, deviation * std::sqrt(3.0) * 0.999);
  }
}

TEST(InitializerTest, FansOfConvolutionsAndVectors) {
  EXPECT_NEAR(MomentsOf(Values(LeCunGaussian(), {200, 60, 10})).deviation, std::sqrt(1.0 / 600), 0.0006);
  EXPECT_NEAR(MomentsOf(Values(LeCunGaussian(), {40000})).deviation, std::sqrt(1.0 / 40000), 0.0001);
}

TEST(InitializerTest, DependsOnSeedAndNameOnly) {
  const std::vector<float> values = Values(Gaussian(1), {8, 8});
  EXPECT_EQ(values, Values(Gaussian(1), {8, 8}));
  EXPECT_NE(values, Values(Gaussian(1), {8, 8}, 2));
  EXPECT_NE(values, Values(Gaussian(1), {8, 8}, 1, "other"));
}

TEST(InitializerTest, OtherDtypes) {
  Arena arena;
  const Tensor f64 = {{kF64, {64}}, arena.Allocate(512)}, bf16 = {{kBF16, {64}}, arena.Allocate(128)},
               i32 = {{kI32, {4}}, arena.Allocate(16)};
  Initialize(Gaussian(1), 1, "weight", f64);
  Initialize(Gaussian(1), 1, "weight", bf16);
  Initialize(Constant(3), 1, "weight", i32);
  const std::vector<float> f32 = Values(Gaussian(1), {64});
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(static_cast<float>(f64.as<double>()[i]), f32[i]);
    EXPECT_EQ(bf16.as<BF16>()[i].bits, BF16(f32[i]).bits);
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(i32.as<int32_t>()[i], 3);
}

}  // namespace
}  // namespace weft
