#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"
#include "weft/tests/op_names.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kWidth = 128;
constexpr int kLayers = 8;
constexpr size_t kMatrix = kWidth * kWidth * sizeof(float);

// A chain of layers. The update of each weight is recorded at the end.
struct Chain {
  explicit Chain(bool global_norm) {
    VarList weights;
    Var y = x;
    for (int i = 0; i < kLayers; ++i) {
      weights.push_back(tape.Parameter("w" + std::to_string(i), {kF32, {kWidth, kWidth}}, Gaussian(0.1f)));
      y = Tanh(MatMul(y, weights.back()));
    }
    loss = Sum(y);
    const VarList gradients = Gradient(loss, weights);
    const Var scale = ClipScale(GlobalNorm(gradients), 1);
    for (int i = 0; i < kLayers; ++i) {
      const Var factor = global_norm ? scale : ClipScale(SquareSum(gradients[i]), 0);
      const Var momentum = tape.State("m" + std::to_string(i), weights[i].type(), Zeros());
      updates.push_back(SgdUpdate(weights[i], momentum, gradients[i], rate, factor, {})[0]);
    }
  }

  Tape tape;
  Var x = tape.Input("x", {kF32, {4, kWidth}});
  Var rate = tape.Input("rate", {kF32, {}});
  Var loss;
  VarList updates;
};

TEST(AdvanceWritesTest, FreesAGradientWhenItsUpdateHasRun) {
  const Chain alone(false), together(true);
  const absl::StatusOr<Graph> early = Compile(alone.tape, {.fetch = {alone.loss}, .update = alone.updates});
  const absl::StatusOr<Graph> late = Compile(together.tape, {.fetch = {together.loss}, .update = together.updates});
  ASSERT_TRUE(early.ok() && late.ok()) << early.status() << late.status();
  EXPECT_GE(late->compiled().memory.planned, kLayers * kMatrix);
  EXPECT_LT(early->compiled().memory.planned, 4 * kMatrix);
  EXPECT_THAT(OpNames(early->program()), Not(Contains("copy")));
}

TEST(AdvanceWritesTest, StaysBehindTheReadersOfTheOldVersion) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  const Var w = tape.State("w", {kF32, {2}}, Zeros());
  const Var next = x + 1.0;
  const Var before = Exp(w);  // recorded between `next` and the write
  const Var written = Assign(w, next);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {before, written}, .update = {written}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(OpNames(graph->program()), Not(Contains("copy")));
  Parameters parameters;
  Runner runner(*graph, &parameters, {.threads = 2});
  for (int run = 0; run < 2; ++run) {
    const absl::StatusOr<Outputs> out = runner.Run({{x, std::vector<float>{1, 2}}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_FLOAT_EQ((*out)[before].span<float>()[1], run == 0 ? 1 : std::exp(3.0f));
    EXPECT_EQ((*out)[written].span<float>()[1], 3);
  }
}

TEST(OrderWritesTest, GraphsOfOneTapeCanWriteAVersionInTwoWays) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  const Var w = tape.State("w", {kF32, {2}}, Zeros());
  const Var written = Assign(w, x);
  const Var doubled = Assign(w, x + x);
  ASSERT_TRUE(tape.status().ok()) << tape.status();
  EXPECT_THAT(std::string(Compile(tape, {.update = {written, doubled}}).status().message()),
              HasSubstr("assign: the graph has two writes of one version of f32[2]; write its latest version"));
  Parameters parameters;
  for (const Var update : {written, doubled}) {
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {update}, .update = {update}});
    ASSERT_TRUE(graph.ok()) << graph.status();
    Runner runner(*graph, &parameters, {.threads = 1});
    const absl::StatusOr<Outputs> out = runner.Run({{x, std::vector<float>{1, 2}}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[update].span<float>()[1], update.id == written.id ? 2 : 4);
  }
}

}  // namespace
}  // namespace weft
