#include "weft/graph/run/check_gradients.h"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// y = x², with the gradient `factor` · x · dy. It is right if the factor is 2.
absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) { return Types{in[0]}; }

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const int64_t cols = a.output_shape(0).cols();
  for (int64_t i = tile.row_begin * cols; i < tile.row_end * cols; ++i) {
    a.output<T>(0)[i] = a.input<T>(0)[i] * a.input<T>(0)[i];
  }
}

template <int kPercent>
VarList Derivative(const GradientArgs& a) {
  return {0.01 * kPercent * a.input(0) * a.grad(0)};
}

template <int kPercent>
constexpr OpDef kSquareWith = {.name = "square",
                               .infer = Infer,
                               .kernels = {Kernel<float>, Kernel<double>},
                               .cut = Cut::kRows,
                               .gradient = Derivative<kPercent>};

// Returns the mean of square(x w + b), for x of the loss's dtype.
template <int kPercent>
absl::Status Check(DType dtype, int64_t width = 3) {
  Tape tape;
  const Var x = tape.Input("x", {dtype, {4, 2}});
  const Var w = tape.Parameter("w", {dtype, {2, width}}, Gaussian(1));
  const Var b = tape.Parameter("b", {dtype, {width}}, Gaussian(1));
  tape.Parameter("unused", {dtype, {2}}, Gaussian(1));
  const Var loss = Mean(Record(kSquareWith<kPercent>, {MatMul(x, w) + b}));
  Parameters parameters({.seed = 1});
  const std::vector<double> numbers = {1, -2, 0.5, 3, -1, 0.25, 2, -0.5};
  if (dtype == kF64) return CheckGradients(loss, &parameters, {{x, numbers}});
  return CheckGradients(loss, &parameters, {{x, std::vector<float>(numbers.begin(), numbers.end())}});
}

TEST(CheckGradientsTest, RightGradients) {
  for (const DType dtype : {kF32, kF64}) {
    EXPECT_TRUE(Check<200>(dtype).ok()) << Check<200>(dtype);
    EXPECT_TRUE(Check<200>(dtype, 200).ok()) << Check<200>(dtype, 200);  // a sample of the elements
  }
}

TEST(CheckGradientsTest, WrongGradientsNameParameterElementAndNumbers) {
  for (const DType dtype : {kF32, kF64}) {
    const absl::Status status = Check<300>(dtype);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    const std::string message(status.message());
    double is = 0, wanted = 0;
    int row = -1, column = -1;
    ASSERT_EQ(std::sscanf(message.c_str(), "parameter 'w': the gradient at [%d,%d] is %lf, but differences give %lf",
                          &row, &column, &is, &wanted),
              4)
        << message;
    EXPECT_NEAR(is / wanted, 1.5, 0.01) << message;
    EXPECT_NE(Check<300>(dtype, 200).message(), "");
  }
  EXPECT_EQ(Check<201>(kF64).code(), absl::StatusCode::kInternal);
}

// Returns the result for the mean of 0.3 w in `loss_dtype`, where all three elements of w, of `dtype`, are `value`.
absl::Status CheckProduct(DType dtype, DType loss_dtype, double value) {
  Tape tape;
  const Var w = tape.Parameter("w", {dtype, {3}}, Constant(value));
  Parameters parameters;
  return CheckGradients(Mean(Cast(w, loss_dtype) * 0.3), &parameters);
}

TEST(CheckGradientsTest, TheLossAndAParameterMayDifferInDType) {
  for (const DType dtype : {kF32, kF64}) {
    for (const DType loss : {kF32, kF64}) {
      const absl::Status status = CheckProduct(dtype, loss, 0.7);
      EXPECT_TRUE(status.ok()) << Name(dtype) << ", loss " << Name(loss) << ": " << status;
    }
  }
}

TEST(CheckGradientsTest, FailsIfNothingIsCompared) {
  EXPECT_EQ(CheckProduct(kF32, kF32, 1e30).message(), "no element was compared");  // the step rounds away
  Tape tape;
  const Var x = tape.Input("x", {kF64, {2}});
  tape.Parameter("unused", {kF64, {2}}, Gaussian(1));
  Parameters parameters;
  EXPECT_EQ(CheckGradients(Sum(x), &parameters, {{x, std::vector<double>{1, 2}}}).message(), "no element was compared");
}

TEST(CheckGradientsTest, AnInfiniteLossIsAnError) {
  double x = 1, gradient = 0.5;
  const Tensor at = {{kF64, {1}}, reinterpret_cast<std::byte*>(&x)},
               is = {{kF64, {1}}, reinterpret_cast<std::byte*>(&gradient)};
  const auto loss = [&] { return x > 1 ? std::numeric_limits<double>::infinity() : 0; };
  EXPECT_EQ(CompareWithDifferences(loss, at, is, {}).status().message(),
            "the gradient at [0] is 0.5, but differences give inf");
}

TEST(CheckGradientsTest, ComparesAtMostTheMaximumOfElements) {
  std::vector<double> x(95, 1), gradient(95, 1);
  const Tensor at = {{kF64, {95}}, reinterpret_cast<std::byte*>(x.data())},
               is = {{kF64, {95}}, reinterpret_cast<std::byte*>(gradient.data())};
  const auto loss = [&] { return std::accumulate(x.begin(), x.end(), 0.0); };
  for (const auto& [most, compared] : {std::pair{0, 1}, {1, 1}, {48, 48}, {94, 48}, {95, 95}, {1000, 95}}) {
    const auto count = CompareWithDifferences(loss, at, is, {.max_elements = most});
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(*count, compared) << most;
  }
}

TEST(CheckGradientsTest, KeepsTheValuesOfParameters) {
  Tape tape;
  const Var w = tape.Parameter("w", {kF64, {3}}, Gaussian(1));
  const Var loss = Sum(Exp(w));
  Parameters parameters({.seed = 1}), same({.seed = 1});
  ASSERT_TRUE(CheckGradients(loss, &parameters).ok());
  ASSERT_TRUE(same.Create(tape.program().parameters).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(parameters.Find("w")->span<double>()[i], same.Find("w")->span<double>()[i]);
  }
}

TEST(CheckGradientsTest, ErrorsOfRecordingAndFeeding) {
  Tape tape;
  const Var x = tape.Input("x", {kF64, {2}});
  const Var w = tape.Parameter("w", {kF64, {2}}, Gaussian(1));
  const Var loss = Sum(x * w);
  Parameters parameters;
  EXPECT_NE(CheckGradients(loss, &parameters).message().find("'x'"), std::string::npos);
  tape.Parameter("h", {kBF16, {2}}, Gaussian(1));
  EXPECT_EQ(CheckGradients(loss, &parameters).message(),
            "parameter 'h': bf16[2] has no differences, wanted f32 or f64");
}

}  // namespace
}  // namespace weft
