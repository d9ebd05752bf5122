// Special values equal <cmath>'s at any index of an array.
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weft/ops/kernels/rows/rows.h"

namespace weft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
bool Same(T got, T wanted, T tolerance) {
  if (std::isnan(wanted)) return std::isnan(got);
  if (wanted == 0) return got == 0 && std::signbit(got) == std::signbit(wanted);
  return got == wanted || std::abs(got - wanted) <= tolerance * std::abs(wanted) + std::numeric_limits<T>::denorm_min();
}

constexpr int64_t kSizes[] = {1, 3, 8, 19, 64};  // whole vectors, a part of one, and both

template <class T>
class VectorTest : public ::testing::Test {
 protected:
  static constexpr T kTolerance = sizeof(T) == 4 ? static_cast<T>(2e-6) : static_cast<T>(1e-12);
};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(VectorTest, Floats);

TYPED_TEST(VectorTest, UnarySpecialValues) {
  using T = TypeParam;
  using enum UnaryFunction;
  const auto expect = [&](const char* name, UnaryFunction function, double x, double wanted) {
    for (const int64_t n : kSizes) {
      std::vector<T> y(n, static_cast<T>(x));
      Maps<T>().unary(function, y.data(), y.data(), n);
      for (const T got : y) {
        ASSERT_TRUE(Same(got, static_cast<T>(wanted), this->kTolerance))
            << name << "(" << x << ") of " << n << ": got " << got << ", wanted " << wanted;
      }
    }
  };
  constexpr double kArguments[] = {kInf, -kInf, kNan, 0, -0.0, 0x1p-140, 1e30, -1e30};  // 2^-140 is subnormal in f32
  constexpr struct {
    const char* name;
    UnaryFunction function;
    double wanted[std::size(kArguments)];
  } kRows[] = {
      {"exp", kExp, {kInf, 0, kNan, 1, 1, 1, kInf, 0}},
      {"log", kLog, {kInf, kNan, kNan, -kInf, -kInf, -97.04060527839234, 69.07755278982137, kNan}},
      {"sqrt", kSqrt, {kInf, kNan, kNan, 0, -0.0, 0x1p-70, 1e15, kNan}},
      {"tanh", kTanh, {1, -1, kNan, 0, -0.0, 0x1p-140, 1, -1}},
      {"erf", kErf, {1, -1, kNan, 0, -0.0, 0x1.20dd750429b6dp-140, 1, -1}},
      {"relu", kRelu, {kInf, 0, kNan, 0, -0.0, 0x1p-140, 1e30, 0}},
      {"sigmoid", kSigmoid, {1, 0, kNan, 0.5, 0.5, 0.5, 1, 0}},
      // x · Φ(x) = -inf · 0 is NaN, as PyTorch's
      {"gelu erf", kGeluErf, {kInf, kNan, kNan, 0, -0.0, 0x1p-141, 1e30, -0.0}},
      {"gelu tanh", kGeluTanh, {kInf, kNan, kNan, 0, -0.0, 0x1p-141, 1e30, -0.0}},
  };
  for (const auto& [name, function, wanted] : kRows) {
    for (size_t i = 0; i < std::size(kArguments); ++i) expect(name, function, kArguments[i], wanted[i]);
  }
  expect("log", kLog, 1, 0);
  expect("log", kLog, -1, kNan);
  expect("sqrt", kSqrt, -1, kNan);
  expect("sigmoid", kSigmoid, -20, 2.0611536181902037e-09);
}

TYPED_TEST(VectorTest, BinarySpecialValues) {
  using T = TypeParam;
  using enum BinaryFunction;
  const struct {
    const char* name;
    BinaryFunction function;
    std::vector<std::array<double, 3>> values;  // a, b and f(a, b)
  } kRows[] = {
      {"add", kAdd, {{kInf, -kInf, kNan}, {kNan, 1, kNan}}},
      {"sub", kSub, {{kInf, kInf, kNan}, {0x1p-140, 0x1p-141, 0x1p-141}}},
      {"mul", kMul, {{kInf, 0, kNan}, {-0.0, 1, -0.0}}},
      {"div", kDiv, {{0, 0, kNan}, {-1, 0, -kInf}, {-1, kInf, -0.0}}},
      // If a equals b, the result is a.
      {"minimum",
       kMinimum,
       {{kNan, 1, kNan}, {1, kNan, kNan}, {kNan, -kInf, kNan}, {kInf, -kInf, -kInf}, {-0.0, 0, -0.0}, {0, -0.0, 0}}},
      {"gelu erf gradient", kGeluErfGradient, {{kInf, 3, 3}, {kNan, 3, kNan}, {0, 3, 1.5}, {1e30, 3, 3}}},
      {"gelu tanh gradient", kGeluTanhGradient, {{kInf, 3, 3}, {kNan, 3, kNan}, {-0.0, 3, 1.5}, {1e30, 3, 3}}},
  };
  for (const auto& [name, function, values] : kRows) {
    for (const auto& [a, b, wanted] : values) {
      for (const int64_t n : kSizes) {
        for (const auto& [a_stride, b_stride] : {std::pair{0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
          const std::vector<T> left(n, static_cast<T>(a)), right(n, static_cast<T>(b));
          std::vector<T> y(n);
          Maps<T>().binary(function, left.data(), a_stride, right.data(), b_stride, y.data(), n);
          for (const T got : y) {
            ASSERT_TRUE(Same(got, static_cast<T>(wanted), this->kTolerance))
                << name << "(" << a << ", " << b << ") of " << n << ": got " << got << ", wanted " << wanted;
          }
        }
      }
    }
  }
}

// Compares with <cmath>, from the smallest subnormal to the largest number.
TYPED_TEST(VectorTest, FollowsTheStandardLibrary) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  const struct {
    const char* name;
    UnaryFunction function;
    T (*reference)(T);
  } kRows[] = {
      {"exp", UnaryFunction::kExp, [](T x) { return std::exp(x); }},
      {"log", UnaryFunction::kLog, [](T x) { return std::log(x); }},
      {"sqrt", UnaryFunction::kSqrt, [](T x) { return std::sqrt(x); }},
      {"tanh", UnaryFunction::kTanh, [](T x) { return std::tanh(x); }},
      {"erf", UnaryFunction::kErf, [](T x) { return std::erf(x); }},
  };
  std::vector<T> xs = {Limits::denorm_min(), Limits::min(), Limits::min() / 3, Limits::epsilon(), Limits::max()};
  for (T x = static_cast<T>(1e-30); x < static_cast<T>(1e30); x *= static_cast<T>(1.7)) xs.push_back(x);
  for (size_t i = 0, n = xs.size(); i < n; ++i) xs.push_back(-xs[i]);
  for (const auto& [name, function, reference] : kRows) {
    std::vector<T> y(xs.size());
    Maps<T>().unary(function, xs.data(), y.data(), static_cast<int64_t>(xs.size()));
    for (size_t i = 0; i < xs.size(); ++i) {
      const T wanted = reference(xs[i]);
      EXPECT_TRUE(Same(y[i], wanted, this->kTolerance))
          << name << "(" << xs[i] << "): got " << y[i] << ", wanted " << wanted;
    }
  }
}

// Checks the error that vector.cc states at every 101st number up to where erf is 1.
TEST(ErfTest, AbsoluteError) {
  std::vector<float> x;
  for (auto bits = std::bit_cast<uint32_t>(1e-6f); bits < std::bit_cast<uint32_t>(4.5f); bits += 101) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-x.back());
  }
  std::vector<float> y(x.size());
  Maps<float>().unary(UnaryFunction::kErf, x.data(), y.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(y[i], std::erf(static_cast<double>(x[i])), 2e-7) << "erf(" << x[i] << ")";
  }
}

std::vector<BF16> AllOfBF16() {
  std::vector<BF16> all(1 << 16);
  for (size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<uint16_t>(i);
  return all;
}
bool SameBits(BF16 got, BF16 wanted) {
  return got.bits == wanted.bits || (std::isnan(float{got}) && std::isnan(float{wanted}));
}

TEST(BF16Test, FunctionsAreThoseOfF32RoundedOnce) {
  const std::vector<BF16> x = AllOfBF16();
  const auto n = static_cast<int64_t>(x.size());
  const std::vector<float> wide(x.begin(), x.end());
  std::vector<BF16> y(x.size());
  std::vector<float> wanted(x.size());
  for (int f = 0; f <= static_cast<int>(UnaryFunction::kGeluTanh); ++f) {
    Maps<BF16>().unary(static_cast<UnaryFunction>(f), x.data(), y.data(), n);
    Maps<float>().unary(static_cast<UnaryFunction>(f), wide.data(), wanted.data(), n);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(SameBits(y[i], BF16(wanted[i]))) << f << " of " << wide[i];
  }
  const std::vector<BF16> b = {x.rbegin(), x.rend()};
  const std::vector<float> wide_b(b.begin(), b.end());
  for (int f = 0; f <= static_cast<int>(BinaryFunction::kGeluTanhGradient); ++f) {
    for (const int b_stride : {0, 1}) {
      Maps<BF16>().binary(static_cast<BinaryFunction>(f), x.data(), 1, &b[77 * (1 - b_stride)], b_stride, y.data(), n);
      Maps<float>().binary(static_cast<BinaryFunction>(f), wide.data(), 1, &wide_b[77 * (1 - b_stride)], b_stride,
                           wanted.data(), n);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(SameBits(y[i], BF16(wanted[i]))) << f << " of " << wide[i];
    }
  }
  Maps<BF16>().scale(x.data(), 0.3f, y.data(), n);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(SameBits(y[i], BF16(wide[i] * 0.3f))) << wide[i];
}

TEST(BF16Test, ConversionsAreThoseOfOneNumber) {
  const std::vector<BF16> all = AllOfBF16();
  std::vector<float> wide(all.size());
  Maps<BF16>().widen(all.data(), wide.data(), static_cast<int64_t>(all.size()));
  std::vector<float> between;  // ties and their neighbours
  for (size_t i = 0; i < all.size(); ++i) {
    const auto bits = static_cast<uint32_t>(all[i].bits) << 16;
    ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), bits);
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      between.push_back(std::bit_cast<float>(bits | lower));
    }
  }
  for (const size_t n : {between.size(), size_t{1}, size_t{7}, size_t{16}, size_t{37}}) {
    std::vector<BF16> rounded(n + 1);
    rounded[n].bits = 0x1234;
    Maps<BF16>().narrow(between.data(), rounded.data(), static_cast<int64_t>(n));
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(rounded[i].bits, BF16(between[i]).bits) << std::bit_cast<uint32_t>(between[i]);
    }
    ASSERT_EQ(rounded[n].bits, 0x1234) << "written behind the end";
  }
}

TEST(VectorTest, IntegersWrapAroundAndQuotientsAreTruncated) {
  constexpr int32_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
  const int32_t a[] = {kHigh, kLow, -7, 7, 7, 65536}, b[] = {1, -1, 2, -2, 0, 65536};
  const std::pair<BinaryFunction, std::vector<int32_t>> wanted[] = {
      {BinaryFunction::kAdd, {kLow, kHigh, -5, 5, 7, 131072}},
      {BinaryFunction::kSub, {kHigh - 1, kLow + 1, -9, 9, 7, 0}},
      {BinaryFunction::kMul, {kHigh, kLow, -14, -14, 0, 0}},
      {BinaryFunction::kDiv, {kHigh, kLow, -3, -3, 0, 1}},
      {BinaryFunction::kMinimum, {1, kLow, -7, -2, 0, 65536}},
      {BinaryFunction::kMaximum, {kHigh, -1, 2, 7, 7, 65536}}};
  for (const auto& [function, values] : wanted) {
    std::vector<int32_t> y(values.size());
    Maps<int32_t>().binary(function, a, 1, b, 1, y.data(), static_cast<int64_t>(y.size()));
    EXPECT_EQ(y, values) << static_cast<int>(function);
  }
}

}  // namespace
}  // namespace weft
