#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/parameters.h"
#include "weft/core/random.h"
#include "weft/core/tape.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"
#include "weft/ops/product/matmul.h"
#include "weft/tests/op_names.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kVocabulary = 100, kWidth = 64, kHidden = 608;

// A language model of one layer, whose token table is also its head.
struct Model {
  Tape tape;
  Var ids, hidden, logits;

  explicit Model(int64_t rows, int64_t width = kWidth) {
    const Var table = tape.Parameter("table", {kF32, {kVocabulary, width}}, Gaussian(1));
    const Var up = tape.Parameter("up", {kF32, {kHidden, width}}, Gaussian(0.1f));
    const Var down = tape.Parameter("down", {kF32, {width, kHidden}}, Gaussian(0.1f));
    ids = tape.Input("ids", {kI32, {rows}}, {.below = kVocabulary});
    hidden = MatMul(Relu(MatMul(Embedding(table, ids), up, {.transpose_b = true})), down, {.transpose_b = true});
    logits = MatMul(hidden, table, {.transpose_b = true});
  }
};

std::vector<int32_t> Ids(int64_t rows) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < rows; ++i) ids.push_back(static_cast<int32_t>(i * 7 % kVocabulary));
  return ids;
}

std::vector<float> Logits(int64_t rows, DType weights, Parameters* parameters, int64_t width = kWidth) {
  Model model(rows, width);
  const absl::StatusOr<Graph> graph = Compile(model.tape, {.fetch = {model.logits}, .mode = kEval, .weights = weights});
  EXPECT_TRUE(graph.ok()) << graph.status();
  Runner runner(*graph, parameters);
  const absl::StatusOr<Outputs> out = runner.Run({{model.ids, Ids(rows)}});
  EXPECT_TRUE(out.ok()) << out.status();
  const absl::Span<const float> logits = (*out)[model.logits].span<const float>();
  return {logits.begin(), logits.end()};
}

double RelativeError(const std::vector<float>& got, const std::vector<float>& wanted) {
  double errors = 0, squares = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    errors += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    squares += wanted[i] * wanted[i];
  }
  return std::sqrt(errors / squares);
}

TEST(StoreWeightsTest, ResultsStayCloseInAllFormatsForAnyNumberOfRows) {
  for (const int64_t rows : {1, 3, 16, 48, 49, 600}) {
    Parameters exact({.seed = 1});
    const std::vector<float> wanted = Logits(rows, kF32, &exact);
    for (const auto& [weights, tolerance] : {std::pair{kBF16, 0.01}, {kQ8_0, 0.02}, {kQ4_0, 0.25}}) {
      Parameters parameters({.seed = 1});
      EXPECT_LT(RelativeError(Logits(rows, weights, &parameters), wanted), tolerance) << Name(weights) << " " << rows;
      EXPECT_EQ(parameters.Find("table")->type, (TensorType{weights, {kVocabulary, kWidth}}));
    }
  }
}

TEST(StoreWeightsTest, RowsMayEndInsideABlock) {
  for (const int64_t width : {100, 312}) {
    for (const int64_t rows : {1, 3, 49, 200}) {
      Parameters exact({.seed = 1});
      const std::vector<float> wanted = Logits(rows, kF32, &exact, width);
      for (const auto& [weights, tolerance] : {std::pair{kBF16, 0.01}, {kQ8_0, 0.02}, {kQ4_0, 0.25}}) {
        Parameters parameters({.seed = 1});
        EXPECT_LT(RelativeError(Logits(rows, weights, &parameters, width), wanted), tolerance)
            << Name(weights) << ", " << rows << " rows of " << width;
        EXPECT_EQ(parameters.Find("table")->type, (TensorType{weights, {kVocabulary, width}}));
        EXPECT_EQ(parameters.Find("down")->type, (TensorType{weights, {width, kHidden}}));
      }
    }
  }
}

TEST(StoreWeightsTest, GraphsOfDifferentNumbersOfRowsShareParameters) {
  Parameters parameters({.seed = 1});
  const std::vector<float> one = Logits(1, kQ8_0, &parameters), many = Logits(600, kQ8_0, &parameters);
  EXPECT_LT(RelativeError(one, std::vector<float>(many.begin(), many.begin() + kVocabulary)), 0.02);
}

TEST(StoreWeightsTest, SetConvertsAndChecksShapes) {
  Parameters exact({.seed = 1}), parameters({.draw = false});
  Logits(1, kF32, &exact);
  Logits(1, kQ8_0, &parameters);
  std::vector<NamedTensor> tensors;
  for (const std::string& name : exact.Names()) tensors.push_back({name, *exact.Find(name)});
  ASSERT_TRUE(parameters.Set("here", tensors).ok());
  Parameters drawn({.seed = 1});
  EXPECT_EQ(Logits(3, kQ8_0, &parameters), Logits(3, kQ8_0, &drawn));
  tensors[0].tensor.type.shape = {kWidth, kHidden / 2};
  EXPECT_THAT(std::string(parameters.Set("here", tensors).message()), HasSubstr("wanted q8_0[64,608]"));
}

TEST(StoreWeightsTest, FewRowsOfF32HaveTheirOwnOp) {
  const auto ops = [](int64_t rows, PassSet without) {
    Model model(rows);
    return OpNames(Compile(model.tape, {.fetch = {model.logits}, .mode = kEval, .without = without})->program());
  };
  Model model(49);
  const CompileOptions more = {.fetch = {model.logits}, .mode = kEval, .few_rows = 49};
  EXPECT_THAT(OpNames(Compile(model.tape, more)->program()), Contains("weight_matmul"));
  EXPECT_THAT(ops(48, {}), Contains("weight_matmul"));
  EXPECT_THAT(ops(49, {}), Not(Contains("weight_matmul")));
  EXPECT_THAT(ops(16, {Pass::kStoreWeights}), Not(Contains("weight_matmul")));
}

TEST(StoreWeightsTest, LookedUpRowsOfAWeightCountAsAWeight) {
  const auto count = [](int64_t rows, DType weights, bool of_parameter) {
    Model model(rows);
    const Var table = model.tape.FindParameter("table");
    const Var chosen = Embedding(of_parameter ? table : Tanh(table), model.ids);
    const Var logits = MatMul(model.hidden, chosen, {.transpose_b = true});
    const auto graph = Compile(model.tape, {.fetch = {logits}, .mode = kEval, .weights = weights});
    EXPECT_TRUE(graph.ok()) << graph.status();
    const std::vector<std::string> names = OpNames(graph->program());
    return std::count(names.begin(), names.end(), "weight_matmul");
  };
  EXPECT_EQ(count(3, kF32, true), 3);  // up, down, and the rows that are looked up
  EXPECT_EQ(count(3, kQ8_0, true), 3);
  EXPECT_EQ(count(3, kF32, false), 2);
  EXPECT_EQ(count(600, kF32, true), 0);
}

TEST(StoreWeightsTest, ManyRowsHaveThisOpWhereItIsFast) {
  for (const DType weights : {kBF16, kQ8_0, kQ4_0}) {
    for (const int64_t rows : {49, 600}) {
      Model model(rows);
      const auto graph = Compile(model.tape, {.fetch = {model.logits}, .mode = kEval, .weights = weights});
      const std::vector<std::string> ops = OpNames(graph->program());
      EXPECT_EQ(std::count(ops.begin(), ops.end(), "weight_matmul") > 0, FastWithManyRows(weights)) << Name(weights);
    }
  }
}

TEST(StoreWeightsTest, WeightsWithOtherReadersStay) {
  Model model(2);
  const Var table = model.tape.Parameter("other", {kF32, {kWidth, kWidth}}, Gaussian(1));
  const Var sum = Sum(table), product = MatMul(model.hidden, table, {.transpose_b = true});
  const absl::StatusOr<Graph> graph = Compile(model.tape, {.fetch = {sum, product}, .mode = kEval, .weights = kQ8_0});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  ASSERT_TRUE(runner.status().ok());
  EXPECT_EQ(parameters.Find("other")->type.dtype, kF32);
  EXPECT_EQ(parameters.Find("up")->type.dtype, kQ8_0);
}

TEST(StoreWeightsTest, TablesAreStoredUnlessTheyAreExact) {
  for (const bool exact : {false, true}) {
    Tape tape;
    const Var table = tape.Parameter("table", {kF32, {64, 64}}, Gaussian(1), /*least=*/exact ? kF32 : kQ4_0);
    const Var ids = tape.Input("ids", {kI32, {2}}, {.below = 64});
    const absl::StatusOr<Graph> graph =
        Compile(tape, {.fetch = {Embedding(table, ids)}, .mode = kEval, .weights = kQ8_0});
    ASSERT_TRUE(graph.ok()) << graph.status();
    Parameters parameters;
    Runner runner(*graph, &parameters);
    ASSERT_TRUE(runner.status().ok());
    EXPECT_EQ(parameters.Find("table")->type.dtype, exact ? kF32 : kQ8_0);
  }
}

TEST(StoreWeightsTest, TrainedWeightsStay) {
  Model model(2);
  const Var up = model.tape.Weights()[1];
  const Var gradient = model.tape.Gradient(Sum(model.logits), {up})[0];
  const absl::StatusOr<Graph> graph = Compile(model.tape, {.fetch = {gradient}, .weights = kBF16});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  EXPECT_EQ(parameters.Find("table")->type.dtype, kF32) << "the gradient reads it transposed";
}

TEST(StoreWeightsTest, OtherDTypesAreAnError) {
  Model model(2);
  const absl::Status status = Compile(model.tape, {.fetch = {model.logits}, .weights = kI32}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("weights is i32, wanted f32, bf16, f16, q8_0, "));
}

}  // namespace
}  // namespace weft
