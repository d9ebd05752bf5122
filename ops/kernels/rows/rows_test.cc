// Rows with special values, of sizes that do and do not fill whole vectors.
#include "weft/ops/kernels/rows/rows.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kSizes[] = {2, 7, 8, 16, 17, 67};

template <class T>
bool Same(T got, double wanted) {
  if (std::isnan(wanted)) return std::isnan(got);
  return got == wanted || std::abs(got - wanted) <= (sizeof(T) == 4 ? 2e-6 : 1e-12) * std::abs(wanted);
}

// A row of equal numbers `rest` with one `special` number: its reductions, and the softmax of both numbers.
struct Row {
  double rest, special, max, sum, softmax_of_rest, softmax_of_special;
};
std::vector<Row> RowsOf(int64_t n) {
  const double others = static_cast<double>(n - 1);
  return {
      {1, kNan, kNan, kNan, kNan, kNan},
      {-kInf, kNan, kNan, kNan, kNan, kNan},
      {kInf, kNan, kNan, kNan, kNan, kNan},
      {1, kInf, kInf, kInf, kNan, kNan},
      {-kInf, kInf, kInf, kNan, kNan, kNan},
      {kInf, kInf, kInf, kInf, kNan, kNan},
      {-kInf, -kInf, -kInf, -kInf, 0, 0},  // a row with everything masked
      {1, -kInf, 1, -kInf, 1 / others, 0},
      {-kInf, 1, 1, -kInf, 0, 1},
      {-1e30, 1e30, 1e30, 1e30 - others * 1e30, 0, 1},
      {0, -0.0, 0, 0, 1 / (1 + others), 1 / (1 + others)},
  };
}

template <class T>
class RowsTest : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RowsTest, Floats);

TYPED_TEST(RowsTest, OneSpecialValueAtAnyPosition) {
  using T = TypeParam;
  const RowKernels<T>& kernels = Rows<T>();
  for (const int64_t n : kSizes) {
    for (const Row& row : RowsOf(n)) {
      for (int64_t position = 0; position < n; ++position) {
        SCOPED_TRACE(::testing::Message() << row.special << " at " << position << " of " << n << ", else " << row.rest);
        std::vector<T> x(n, static_cast<T>(row.rest)), y(n);
        x[position] = static_cast<T>(row.special);
        EXPECT_TRUE(Same(kernels.max(x.data(), n), row.max));
        EXPECT_TRUE(Same(kernels.sum(x.data(), n), row.sum));
        kernels.max_rows(x.data(), 1, n, y.data(), 1);
        EXPECT_TRUE(Same(y[0], row.max));
        kernels.sum_rows(x.data(), 1, n, y.data(), 1);
        EXPECT_TRUE(Same(y[0], row.sum));

        kernels.softmax(x.data(), y.data(), n);
        const auto [shift, log_sum] = kernels.log_sum_exp(x.data(), n);
        for (int64_t i = 0; i < n; ++i) {
          const double wanted = i == position ? row.softmax_of_special : row.softmax_of_rest;
          ASSERT_TRUE(Same(y[i], wanted)) << "softmax at " << i << ": got " << y[i] << ", wanted " << wanted;
        }
        const bool masked = row.max == -kInf;
        EXPECT_TRUE(Same(std::exp(x[position] - shift - (masked ? 0 : log_sum)), row.softmax_of_special));
        EXPECT_EQ(masked, log_sum == -static_cast<T>(kInf));
      }
    }
  }
}

TYPED_TEST(RowsTest, OneElement) {
  using T = TypeParam;
  constexpr std::pair<double, double> kRows[] = {{0, 1},     {-3e38, 1},   {1e-45, 1},
                                                 {-kInf, 0}, {kInf, kNan}, {kNan, kNan}};
  for (const auto& [x, softmax] : kRows) {
    const T value = static_cast<T>(x);
    T y = 0;
    Rows<T>().softmax(&value, &y, 1);
    EXPECT_TRUE(Same(y, softmax)) << x;
    EXPECT_TRUE(Same(Rows<T>().max(&value, 1), value)) << x;
    EXPECT_TRUE(Same(Rows<T>().sum(&value, 1), value)) << x;
  }
}

TYPED_TEST(RowsTest, LayerNormOfEqualElements) {
  using T = TypeParam;
  for (const int64_t n : kSizes) {
    const std::vector<T> x(n, T{3}), gain(n, T{2}), bias(n, T{5});
    std::vector<T> y(n);
    T mean = 0, rstd = 0;
    Rows<T>().norm(x.data(), gain.data(), bias.data(), static_cast<T>(1e-6), y.data(), &mean, &rstd, n);
    EXPECT_TRUE(Same(rstd, 1e3));
    for (const T got : y) EXPECT_NEAR(got, 5, 5e-3) << n;
  }
}

}  // namespace
}  // namespace weft
