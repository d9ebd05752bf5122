#include "weft/graph/compile/compile.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/print.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"
#include "weft/tests/op_names.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> OpNames(const absl::StatusOr<Graph>& graph) {
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? weft::OpNames(graph->program()) : std::vector<std::string>();
}

TEST(CompileTest, ReturnsTheTapesFirstError) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {8, 768}});
  {
    const Scope gpt(&tape, "gpt");
    const Scope layer(&tape, "h.3");
    MatMul(x, tape.Input("w", {kF32, {512, 64}}));
  }
  const Var later = Exp(MatMul(x, x));
  EXPECT_EQ(Compile(tape, {.fetch = {later}}).status().message(),
            "matmul: inner dimensions differ, 768 vs 512; inputs f32[8,768], f32[512,64]; at gpt/h.3");
}

TEST(CompileTest, RefusesNoRootsAndForeignRoots) {
  Tape tape, other;
  EXPECT_THAT(Compile(tape, {}).status().message(), HasSubstr("nothing to fetch"));
  EXPECT_THAT(Compile(tape, {.fetch = {other.Input("x", {kF32, {}})}}).status().message(), HasSubstr("another tape"));
  EXPECT_THAT(Compile(tape, {.update = {Var{}}}).status().message(), HasSubstr("a Var to update is empty"));
}

TEST(CompileTest, SharesCommonNodesAndDropsDeadOnes) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  Tanh(x);
  const Var y = Exp(x) + Exp(x);
  EXPECT_THAT(OpNames(Compile(tape, {.fetch = {y}})), ElementsAre("input", "exp", "add"));
}

TEST(CompileTest, KeepsNodesOfOtherAttributesApart) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  const Var y = Scale(x, 2) + Scale(x, 3);
  EXPECT_THAT(OpNames(Compile(tape, {.fetch = {y}})), ElementsAre("input", "scale", "scale", "add"));
}

TEST(CompileTest, FoldsConstants) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  const Var y = x * Exp(Reshape(Fill(&tape, {kF32, {2}}, 1), {1, 2}));
  EXPECT_THAT(OpNames(Compile(tape, {.fetch = {y}})), ElementsAre("input", "constant", "mul"));
}

TEST(CompileTest, DropoutIsGoneInEval) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {64}});
  const Var y = Exp(Dropout(x, 0.5));
  EXPECT_THAT(OpNames(Compile(tape, {.fetch = {y}})), ElementsAre("input", "dropout", "exp"));
  EXPECT_THAT(OpNames(Compile(tape, {.fetch = {y}, .mode = kEval})), ElementsAre("input", "exp"));
}

TEST(CompileTest, LeavesNoGradientNode) {
  Tape tape;
  const Var w = tape.Parameter("w", {kF32, {3, 2}}, Gaussian(1));
  const Var gradient = Gradient(Sum(Exp(w)), {w})[0];
  EXPECT_THAT(OpNames(Compile(tape, {.fetch = {gradient}})), Not(Contains("gradient")));
}

TEST(PrintTest, GivesALineANodeAndAnEdgeAnInput) {
  Tape tape;
  const Var x = tape.Input("tokens", {kF32, {2, 3}});
  {
    const Scope scope(&tape, "head");
    MatMul(x, tape.Parameter("weight", {kF32, {4, 3}}, Zeros()), {.transpose_b = true});
  }
  EXPECT_EQ(PrintText(tape.program()),
            "%1 = input() tokens : f32[2,3]\n"
            "%2 = parameter() head.weight : f32[4,3] @ head\n"
            "%3 = matmul(%1, %2) transpose_a=false transpose_b=true : f32[2,4] @ head\n");
  const std::string dot = PrintDot(tape.program());
  EXPECT_THAT(dot, HasSubstr("digraph weft {"));
  EXPECT_THAT(dot, HasSubstr("n0 [label=\"input\\ntokens\\nf32[2,3]\" style=rounded];"));
  EXPECT_THAT(dot, HasSubstr("n1 -> n2;"));
}

TEST(PrintTest, SaysWhatRunsTogether) {
  Tape tape;
  const Var y = Tanh(Exp(tape.Input("x", {kF32, {2, 3}})));
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(PrintText(*graph), HasSubstr(" = input() x : f32[2,3]\n"));
  EXPECT_THAT(PrintText(*graph), HasSubstr(" : f32[2,3], in group 0\n"));
  EXPECT_THAT(PrintMemory(*graph), HasSubstr("2 kernel calls, 1 groups, 1 tasks, "));
}

TEST(PrintTest, ExplainsWhatBecameOfPatterns) {
  Tape tape;
  const auto attention = [](Var query, Var key, Var value, Var* weights) {
    *weights = Softmax(MatMul(query, key, {.transpose_b = true}));
    return MatMul(*weights, value);
  };
  const TensorType type = {kF32, {2, 9, 4}};
  const Var x = tape.Input("x", type), key = tape.Input("key", type), head = tape.Input("head", {kF32, {17, 4}});
  const Var targets = tape.Input("targets", {kI32, {2, 9}}, {.below = 17});
  Var y = x, weights;
  const auto in_scope = [&](const char* name, auto record) {
    const Scope scope(&tape, name);
    record();
  };
  in_scope("twice", [&] {
    y = attention(y, key, key, &weights);
    y = attention(y, key, key, &weights);
  });
  in_scope("seen", [&] { y = attention(y, key, key, &weights); });
  const Var logits = MatMul(y, head, {.transpose_b = true}), loss = CrossEntropy(logits, targets);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss, logits, Sum(weights)}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(PrintExplanations(*graph),
            "twice: attention: raised (2 times)\n"
            "seen: attention: left alone, because a value inside it is used elsewhere\n"
            "linear + cross-entropy: left alone, because the logits are fetched\n");

  const absl::StatusOr<Graph> none = Compile(tape, {.fetch = {key * 2}});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(PrintExplanations(*none), "no pattern was recognised\n");
}

}  // namespace
}  // namespace weft
