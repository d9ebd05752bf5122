#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/random.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"
#include "weft/tests/op_names.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::Not;

int Count(const Graph& graph, const std::string& name) {
  const std::vector<std::string> names = OpNames(graph.program());
  return static_cast<int>(std::count(names.begin(), names.end(), name));
}

// The squares of x · wᵀ, and their gradients by x and w.
struct Product {
  Product(int64_t rows, int64_t outputs, bool learns = false) : rows(rows) {
    x = tape.Input("x", {kF32, {rows, 96}});
    w = tape.Parameter("w", {kF32, {outputs, 96}}, Gaussian(0.1));
    const Var y = MatMul(x, w, {.transpose_b = true});
    const VarList gradients = Gradient(Sum(y * y), {x, w});
    fetch = {y, gradients[0], gradients[1]};
    if (learns) update = {Assign(w, w - 1e-4 * gradients[1])};
  }

  absl::StatusOr<Graph> Compiled(bool pack, DType precision) const {
    const PassSet without = pack ? PassSet() : PassSet({Pass::kPack});
    return Compile(tape, {.fetch = fetch, .update = update, .precision = precision, .without = without});
  }
  std::vector<std::vector<float>> Run(const Graph& graph, int threads = 1) const {
    std::vector<float> numbers(static_cast<size_t>(rows * 96));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(RandomStream{}.Uniform(i) - 0.5);
    Parameters parameters({.seed = 3});
    Runner runner(graph, &parameters, {.threads = threads});
    std::vector<std::vector<float>> results;
    for (int step = 0; step < 2; ++step) {
      const absl::StatusOr<Outputs> out = runner.Run({{x, numbers}});
      EXPECT_TRUE(out.ok()) << out.status();
      for (Var v : fetch) {
        const absl::Span<const float> values = (*out)[v].span<float>();
        results.emplace_back(values.begin(), values.end());
      }
    }
    return results;
  }

  int64_t rows;
  Tape tape;
  Var x, w;
  VarList fetch, update;
};

TEST(PackWeightsTest, PacksAWeightThatManyRowsAreMultipliedBy) {
  const absl::StatusOr<Graph> graph = Product(600, 200).Compiled(true, kF32);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(OpNames(graph->program()), Contains("packed_matmul"));
  EXPECT_EQ(Count(*graph, "pack"), 1);    // for y; the product of x's gradient reads w in its own order
  EXPECT_EQ(Count(*graph, "matmul"), 2);  // x's gradient and w's, whose right operand is no weight
}

TEST(PackWeightsTest, PacksInPlaceOfTheCastToBF16) {
  if (!HasBF16Products()) GTEST_SKIP() << "this CPU has no products of packed bf16";
  const absl::StatusOr<Graph> graph = Product(600, 200).Compiled(true, kBF16);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Count(*graph, "pack"), 2);
  EXPECT_EQ(Count(*graph, "packed_matmul"), 2);
  for (const Node& node : graph->program().nodes) {
    if (std::string(node.op->name) != "cast") continue;
    EXPECT_NE(graph->program().value(node.output(0)).type.shape, Shape({200, 96})) << "w is cast besides";
  }
}

TEST(PackWeightsTest, PacksOnceForAllProducts) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {600, 96}}), w = tape.Parameter("w", {kF32, {200, 96}}, Gaussian(0.1));
  const Var y = MatMul(x, w, {.transpose_b = true}), z = MatMul(Exp(x), w, {.transpose_b = true});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y, z}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Count(*graph, "pack"), 1);
  EXPECT_EQ(Count(*graph, "packed_matmul"), 2);
}

TEST(PackWeightsTest, LeavesFewRowsAndWhatIsToldNotTo) {
  for (const auto& [rows, outputs, pack] : {std::tuple(100, 200, true), {600, 20, true}, {600, 200, false}}) {
    const absl::StatusOr<Graph> graph = Product(rows, outputs).Compiled(pack, kF32);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_THAT(OpNames(graph->program()), Not(Contains("pack")));
  }
}

// Runs several steps, so that a weight must be packed again after it has changed.
TEST(PackWeightsTest, GivesTheSameNumbersOnAnyThreads) {
  for (const DType precision : {kF32, kBF16}) {
    const Product product(600, 200, /*learns=*/true);
    const absl::StatusOr<Graph> packed = product.Compiled(true, precision);
    const absl::StatusOr<Graph> plain = product.Compiled(false, precision);
    ASSERT_TRUE(packed.ok() && plain.ok()) << packed.status() << plain.status();
    const auto got = product.Run(*packed), expected = product.Run(*plain);
    EXPECT_EQ(got, product.Run(*packed, 3));
    ASSERT_EQ(got.size(), expected.size());
    for (size_t k = 0; k < got.size(); ++k) {
      double difference = 0, scale = 0;
      for (size_t i = 0; i < got[k].size(); ++i) {
        difference += std::abs(got[k][i] - expected[k][i]);
        scale += std::abs(expected[k][i]);
      }
      // The order of the additions differs, so some sums in bf16 round to a neighbouring value.
      EXPECT_LE(difference, (precision == kF32 ? 2e-6 : 4e-3) * scale) << k;
    }
    EXPECT_NE(got[0], got[3]);
  }
}

}  // namespace
}  // namespace weft
