// Tests which casts precision bf16 inserts, and that its results are near those of f32.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/random.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/compile/print.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the nodes that compute, with the types of their first outputs: "matmul bf16[2,4]".
std::vector<std::string> Nodes(const absl::StatusOr<Graph>& graph) {
  EXPECT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> nodes;
  if (!graph.ok()) return nodes;
  const Program& program = graph->program();
  for (const Node& node : program.nodes) {
    if (node.op == &kInputOp || node.op == &kParameterOp || node.op == &kConstantOp || node.op == &kGroupOp) continue;
    nodes.push_back(std::string(node.op->name) + " " + ToString(program.value(node.output(0)).type));
  }
  return nodes;
}

class AutocastTest : public ::testing::Test {
 protected:
  std::vector<std::string> NodesOf(VarList fetch, VarList update = {}) {
    return Nodes(Compile(tape_, {.fetch = fetch, .update = update, .precision = kBF16}));
  }

  Tape tape_;
  const Var x_ = tape_.Input("x", {kF32, {2, 3}});
  const Var w_ = tape_.Parameter("w", {kF32, {3, 3}}, Gaussian(1));
  const Var bias_ = tape_.Parameter("bias", {kF32, {3}}, Gaussian(1));
};

TEST_F(AutocastTest, ProductsTakeBF16AndAWeightIsCastOnce) {
  EXPECT_THAT(NodesOf({MatMul(Gelu(MatMul(x_, w_) + bias_), w_)}),
              ElementsAre("cast bf16[2,3]", "cast bf16[3,3]", "matmul bf16[2,3]", "cast bf16[3]", "add bf16[2,3]",
                          "gelu bf16[2,3]", "matmul f32[2,3]"));
}

TEST_F(AutocastTest, OtherProgramsStayAsTheyAre) {
  EXPECT_THAT(NodesOf({Softmax(x_ + bias_)}), ElementsAre("add f32[2,3]", "softmax f32[2,3]"));
  const Var d = tape_.Input("d", {kF64, {2, 2}}), i = tape_.Input("i", {kI32, {2}}, {.below = 3});
  EXPECT_THAT(NodesOf({MatMul(d, d), Embedding(w_, i)}), ElementsAre("matmul f64[2,2]", "embedding f32[2,3]"));
}

TEST_F(AutocastTest, WhatSumsGetsF32) {
  const Var y = MatMul(x_, w_);
  EXPECT_THAT(NodesOf({Softmax(Scale(y, 2))}), ElementsAre("cast bf16[2,3]", "cast bf16[3,3]", "matmul bf16[2,3]",
                                                           "scale bf16[2,3]", "cast f32[2,3]", "softmax f32[2,3]"));
  EXPECT_THAT(NodesOf({Softmax(y)}),
              ElementsAre("cast bf16[2,3]", "cast bf16[3,3]", "matmul f32[2,3]", "softmax f32[2,3]"));
}

TEST_F(AutocastTest, ANormTakesItsInputAsItIsAndResidualsFollow) {
  EXPECT_THAT(NodesOf({LayerNorm(x_ + MatMul(x_, w_), bias_, bias_)}),
              ElementsAre("cast bf16[2,3]", "cast bf16[3,3]", "matmul bf16[2,3]", "add bf16[2,3]",
                          "layer_norm bf16[2,3]", "cast f32[2,3]"));
}

TEST_F(AutocastTest, AWeightsGradientIsSummedIntoF32) {
  const Var loss = Sum(Exp(MatMul(x_, w_) + bias_));
  const VarList gradients = Gradient(loss, {w_, bias_});
  EXPECT_EQ(gradients[0].type(), w_.type());
  const std::vector<std::string> nodes = NodesOf(gradients);
  EXPECT_THAT(nodes, Contains("matmul f32[3,3]"));
  EXPECT_THAT(nodes, ::testing::Not(Contains("cast f32[3,3]")));
  EXPECT_THAT(nodes, ::testing::Not(Contains("cast f32[3]"))) << "sums of bf16 are f32";
}

// The gradient by an activation counts all its readers, and is f32.
TEST_F(AutocastTest, ByAnActivation) {
  const Var h = MatMul(x_, w_), gradient = Gradient(Sum(Scale(MatMul(h, w_), 3)), {h})[0];
  EXPECT_EQ(gradient.type(), h.type());
  const absl::StatusOr<Graph> graph = Compile(tape_, {.fetch = {gradient}, .precision = kBF16});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  for (float& w : parameters.Find("w")->span<float>()) w = 0.5f;
  const absl::StatusOr<Outputs> out = runner.Run({{x_, std::vector<float>(6, 1)}});
  ASSERT_TRUE(out.ok()) << out.status();
  for (const float g : (*out)[gradient].span<float>()) EXPECT_EQ(g, 4.5f);
}

TEST_F(AutocastTest, StateIsWrittenInF32) {
  const Var state = tape_.State("state", {kF32, {2, 3}}, Zeros());
  EXPECT_THAT(NodesOf({}, {Assign(state, Gelu(MatMul(x_, w_)))}),
              ElementsAre("cast bf16[2,3]", "cast bf16[3,3]", "matmul bf16[2,3]", "gelu bf16[2,3]", "cast f32[2,3]",
                          "assign f32[2,3]"));
}

TEST_F(AutocastTest, WhatFollowsAGradientIsLeftAlone) {
  const Var gradient = Gradient(Sum(Exp(w_)), {w_})[0];
  EXPECT_THAT(NodesOf({MatMul(gradient, w_)}), ElementsAre("exp f32[3,3]", "mul f32[3,3]", "matmul f32[3,3]"));
}

TEST_F(AutocastTest, WhatWasRecordedInBF16StaysSo) {
  const Var y = Cast(x_, kBF16);
  EXPECT_THAT(NodesOf({Gelu(y), Exp(y)}), ElementsAre("cast bf16[2,3]", "gelu bf16[2,3]", "exp bf16[2,3]"));
}

TEST_F(AutocastTest, AnotherPrecisionIsRefused) {
  EXPECT_THAT(Compile(tape_, {.fetch = {x_}, .precision = kF64}).status().message(),
              HasSubstr("precision is f64, wanted f32 or bf16"));
}

// Compares gradients in bf16 with those in f32. Only elementary ops have second gradients.
void ExpectNearF32(bool second_gradient) {
  constexpr int64_t kRows = 6, kCols = 64;
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2, kRows, kCols}});
  const Var w = tape.Parameter("w", {kF32, {kCols, kCols}}, Gaussian(0.1f));
  const Var gain = tape.Parameter("gain", {kF32, {kCols}}, Gaussian(1)),
            bias = tape.Parameter("bias", {kF32, {kCols}}, Gaussian(1));
  Var y = x + (MatMul(LayerNorm(x, gain, bias), w) + bias);
  const VarList parts = Split(Permute(Reshape(MatMul(y, w), {2, kRows, 2, kCols / 2}), {0, 2, 1, 3}), -1, 2);
  const Var distances = tape.Parameter("distances", {kF32, {kRows, kRows}}, Gaussian(1));
  const Var products = MatMul(parts[0], parts[1], {.transpose_b = true});
  const Var scores = CausalMask(Scale(products, 0.2) + distances, -std::numeric_limits<double>::infinity());
  y = MatMul(Softmax(scores), Concat({parts[1], Gelu(parts[0])}, -1));  // [2, 2, rows, cols / 2]
  y = Reshape(Permute(y, {0, 2, 1, 3}), {2, kRows, kCols});
  y = LayerNorm(y + Silu(MatMul(y, w)) * MatMul(y, w, {.transpose_b = true}), gain, bias);
  const Var loss = Mean(y * y * y);
  const VarList first = Gradient(loss, {w, gain, bias, distances});
  VarList fetch = {loss, first[0], first[1], first[2], first[3]};
  if (second_gradient) fetch.push_back(Gradient(SquareSum(first[1]), {gain})[0]);
  std::vector<float> values;
  for (int64_t i = 0; i < x.shape().elements(); ++i) {
    values.push_back(static_cast<float>(4 * RandomStream{.seed = 3}.Uniform(static_cast<uint64_t>(i)) - 2));
  }
  std::vector<std::vector<float>> results[2];
  for (const DType precision : {kF32, kBF16}) {
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = fetch, .precision = precision});
    ASSERT_TRUE(graph.ok()) << graph.status();
    const std::string type = std::string(Name(precision)) + "[2,6,64]";
    if (!second_gradient) {
      EXPECT_THAT(Nodes(graph), Contains("attention " + type));
    }
    Parameters parameters({.seed = 1});
    Runner runner(*graph, &parameters);
    const absl::StatusOr<Outputs> out = runner.Run({{x, values}});
    ASSERT_TRUE(out.ok()) << out.status();
    for (const Var v : fetch) {
      EXPECT_EQ((*out)[v].type, v.type());
      const auto got = (*out)[v].span<float>();
      results[precision == kBF16].emplace_back(got.begin(), got.end());
    }
  }
  for (size_t k = 0; k < fetch.size(); ++k) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < results[0][k].size(); ++i) {
      difference += std::pow(results[1][k][i] - results[0][k][i], 2);
      norm += std::pow(results[0][k][i], 2);
    }
    EXPECT_GT(difference, 0) << k << ": was anything computed in bf16?";
    EXPECT_LT(std::sqrt(difference), 0.03 * std::sqrt(norm)) << k;  // each rounding is 0.004, and there are a dozen
  }
}

TEST(AutocastValuesTest, OfRaisedOpsAreNearThoseOfF32) { ExpectNearF32(/*second_gradient=*/false); }
TEST(AutocastValuesTest, OfElementaryOpsAreNearThoseOfF32) { ExpectNearF32(/*second_gradient=*/true); }

}  // namespace
}  // namespace weft
