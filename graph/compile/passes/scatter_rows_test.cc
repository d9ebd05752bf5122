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
using ::testing::Not;

// logits = table[ids] · tableᵀ
struct Tied {
  Tape tape;
  Var ids = tape.Input("ids", {kI32, {6}}, {.below = 5});
  Var table = tape.Parameter("table", {kF32, {5, 3}}, Gaussian(1));
  Var loss = Sum(Tanh(MatMul(Embedding(table, ids), table, {.transpose_b = true})));
};

TEST(ScatterRowsTest, ATiedTableGetsBothGradientsInOnePlace) {
  Tied tied;
  const Var gradient = Gradient(tied.loss, {tied.table})[0];
  const absl::StatusOr<Graph> graph = Compile(tied.tape, {.fetch = {gradient}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(OpNames(graph->program()), Contains("embedding_gradient_add"));
  EXPECT_THAT(OpNames(graph->program()), Not(Contains("embedding_gradient")));
  const auto& addresses = graph->compiled().addresses;
  const Node& add = graph->program().nodes.back();
  EXPECT_STREQ(add.op->name, "embedding_gradient_add");
  EXPECT_EQ(addresses[add.output(0)].offset, addresses[add.inputs[0]].offset);
}

TEST(ScatterRowsTest, GivesTheSumOfBothGradients) {
  Tied tied;
  const Var whole = Gradient(tied.loss, {tied.table})[0];
  const Var rows = Embedding(tied.table, tied.ids) * 1.0, head = tied.table * 1.0;
  const VarList parts = Gradient(Sum(Tanh(MatMul(rows, head, {.transpose_b = true}))), {rows, head});
  const absl::StatusOr<Graph> graph = Compile(tied.tape, {.fetch = {whole, parts[0], parts[1]}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 3});
  Runner runner(*graph, &parameters, {.threads = 1});
  const std::vector<int32_t> ids = {0, 4, 4, 1, 4, 0};
  const absl::StatusOr<Outputs> out = runner.Run({{tied.ids, ids}});
  ASSERT_TRUE(out.ok()) << out.status();
  std::vector<float> expected((*out)[parts[1]].as<float>(), (*out)[parts[1]].as<float>() + 15);
  for (size_t i = 0; i < ids.size(); ++i) {
    for (int c = 0; c < 3; ++c) expected[ids[i] * 3 + c] += (*out)[parts[0]].as<float>()[i * 3 + c];
  }
  for (int i = 0; i < 15; ++i) EXPECT_FLOAT_EQ((*out)[whole].as<float>()[i], expected[i]) << i;
}

TEST(ScatterRowsTest, LeavesAGradientThatIsReadElsewhere) {
  Tape tape;
  const Var ids = tape.Input("ids", {kI32, {6}}, {.below = 5});
  const Var table = tape.Parameter("table", {kF32, {5, 3}}, Gaussian(1));
  const Var part = Gradient(Sum(Tanh(Embedding(table, ids))), {table})[0];
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {table + part, part * 2.0}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(OpNames(graph->program()), Contains("embedding_gradient"));
}

// Such a gradient is broadcast over the rows or columns of the sum.
TEST(ScatterRowsTest, LeavesAGradientThatTheSumBroadcasts) {
  for (const Shape& shape : {Shape({1, 3}), Shape({1, 1})}) {
    Tape tape;
    const Var ids = tape.Input("ids", {kI32, {6}}, {.below = 1});
    const Var table = tape.Parameter("table", {kF32, shape}, Ones());
    const Var w = tape.Parameter("w", {kF32, {4, 3}}, Zeros());
    const Var sum = w + Gradient(Sum(Embedding(table, ids)), {table})[0];
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {sum}});
    ASSERT_TRUE(graph.ok()) << graph.status();
    Parameters parameters({.seed = 3});
    Runner runner(*graph, &parameters, {.threads = 1});
    const absl::StatusOr<Outputs> out = runner.Run({{ids, std::vector<int32_t>(6)}});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int i = 0; i < 12; ++i) EXPECT_EQ((*out)[sum].as<float>()[i], 6) << i;
  }
}

}  // namespace
}  // namespace weft
