#include "weft/lab/fold.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/ops/ops.h"
#include "weft/train/jobs/gpt_job.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// "forward net/a: matmul 1 tanh 1; 8 in 1": with 8 elements in one parameter; the second part is net/a'
std::vector<std::string> Boxes(const Fold& fold) {
  std::vector<std::string> lines;
  for (const Box& box : fold.boxes) {
    std::string line = absl::StrCat(Name(box.phase), " ", box.scope, box.part == 0 ? "" : "'", ":");
    for (const auto& [op, count] : box.ops) absl::StrAppend(&line, " ", op, " ", count);
    if (box.parameters > 0) absl::StrAppend(&line, "; ", box.parameter_elements, " in ", box.parameters);
    lines.push_back(line);
  }
  return lines;
}

// "0 > 3: 1, 32 bytes": one value, from box 0 to box 3
std::vector<std::string> Edges(const Fold& fold) {
  std::vector<std::string> lines;
  for (const BoxEdge& edge : fold.edges) {
    lines.push_back(absl::StrFormat("%d > %d: %d, %d bytes", edge.from, edge.to, edge.values, edge.bytes));
  }
  return lines;
}

// A product, its tanh, a loss, and an update by the gradient.
struct Net {
  Tape tape;
  Var result, loss, step;

  Net() {
    const Var x = tape.Input("x", {kF32, {8, 4}}), rate = tape.Input("rate", {kF32, {}});
    const Scope net(&tape, "net");
    Var w, y;
    {
      const Scope a(&tape, "a");
      w = tape.Parameter("weight", {kF32, {4, 2}}, Gaussian(1));
      y = MatMul(x, w);
    }
    {
      const Scope b(&tape, "b");
      y = Tanh(y);
    }
    result = y;
    loss = Sum(y);
    const Scope optimizer(&tape, "descent");
    step = Assign(w, w - rate * tape.Gradient(loss, {w})[0]);
  }
};

TEST(FoldTest, BoxesAreOfOneScopeAndPhase) {
  Net net;
  const absl::StatusOr<Graph> graph =
      Compile(net.tape, {.fetch = {net.loss}, .update = {net.step}, .without = {Pass::kPack}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Fold fold = FoldByScope(graph->program(), Phases(graph->compiled()), 2);
  EXPECT_THAT(Boxes(fold),
              ElementsAre("input x: input 1", "input rate: input 1", "forward net/a: matmul 1; 8 in 1",
                          "forward net/b: tanh 1", "forward net: reshape 2 sum_blocks 1", "backward net/b: mul 2 sub 1",
                          "backward net/a: matmul 1", "update net/descent: assign 1 mul 1 sub 1; 8 in 1"));
}

// Compiles the net with its update, so that it gives the loss and `other`, and compares the boxes of its scopes. Only
// the last box depends on `other`.
void ExpectBoxes(const Net& net, Var other, const std::string& last) {
  const absl::StatusOr<Graph> graph =
      Compile(net.tape, {.fetch = {net.loss, other}, .update = {net.step}, .without = {Pass::kPack}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Fold fold = FoldByScope(graph->program(), Phases(graph->compiled()), 2);
  EXPECT_THAT(Boxes(fold),
              ElementsAre("input x: input 1", "input rate: input 1", "forward net/a: matmul 1; 8 in 1",
                          "forward net/b: tanh 1", "forward net: reshape 2 sum_blocks 1", "backward net/b: mul 2 sub 1",
                          "backward net/a: matmul 1", "update net/descent: assign 1 mul 1 sub 1; 8 in 1", last));
}

// The gradient reads the forward pass and belongs to the backward pass, though the graph returns its norm.
TEST(FoldTest, AFetchedNormOfTheGradientIsNotForward) {
  Net net;
  ExpectBoxes(net, Sum(Square(net.step)), "update : mul 1 reshape 2 sum_blocks 1");
}

// A count of right predictions needs the forward pass only, and updates do not need it.
TEST(FoldTest, AnotherFetchedValueIsForward) {
  Net net;
  const Scope scope(&net.tape, "count");
  ExpectBoxes(net, Sum(Exp(net.result)), "forward count: exp 1 reshape 2 sum_blocks 1");
}

TEST(FoldTest, ARecordedProgramIsOnePhase) {
  Net net;
  const Program& program = net.tape.program();
  const Fold fold = FoldByScope(program, RecordedPhases(program), 1);
  EXPECT_THAT(Edges(fold), ElementsAre("0 > 2: 1, 128 bytes", "1 > 2: 1, 4 bytes"));
  const Box& all = fold.boxes.back();
  EXPECT_EQ(all.scope, "net");
  EXPECT_EQ(all.phase, Phase::kRecorded);
  EXPECT_EQ(all.parameter_bytes, 32);
  EXPECT_GE(all.cost.flops, 2 * 8 * 4 * 2);
}

TEST(FoldTest, DepthNoneIsABoxForEachNode) {
  Net net;
  const Program& program = net.tape.program();
  const Fold fold = FoldByScope(program, RecordedPhases(program), 0);
  EXPECT_EQ(fold.boxes.size(), program.nodes.size() - 1);  // without the weight
  for (const Box& box : fold.boxes) EXPECT_EQ(box.nodes.size(), 1u);
}

// Scope b reads a value of scope a, and another node of scope a reads b. With one box for a, the two boxes would read
// each other.
TEST(FoldTest, ACycleIsCutIntoParts) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {8}});
  Var y, z;
  {
    const Scope a(&tape, "a");
    y = Tanh(Tanh(x));
  }
  {
    const Scope b(&tape, "b");
    z = Exp(y);
  }
  const Scope a(&tape, "a");
  Tanh(y + z);
  Sqrt(y);  // belongs to the newest part
  const Fold fold = FoldByScope(tape.program(), RecordedPhases(tape.program()), 1);
  EXPECT_THAT(Boxes(fold), ElementsAre("input x: input 1", "recorded a: tanh 2", "recorded b: exp 1",
                                       "recorded a': add 1 sqrt 1 tanh 1"));
  EXPECT_THAT(Edges(fold),
              ElementsAre("0 > 1: 1, 32 bytes", "1 > 2: 1, 32 bytes", "1 > 3: 1, 32 bytes", "2 > 3: 1, 32 bytes"));
}

TEST(FoldTest, AGptOfTwelveLayersHasABoxForEachBlockAndPhase) {
  GptOptions options;
  options.model.layers = 12;
  options.model.vocabulary = 73;
  const std::unique_ptr<GptProgram> gpt = RecordTraining(options);
  const Optimizer optimizer = options.training.optimizer;
  const Var update = optimizer.Minimize(gpt->training.loss, gpt->tape.Input("learning_rate", {kF32, {}}));
  const absl::StatusOr<Graph> graph = Compile(gpt->tape, {.fetch = {gpt->training.loss}, .update = {update}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<Phase> phases = Phases(graph->compiled());
  for (int depth = 0; depth < 6; ++depth) {
    const Fold fold = FoldByScope(graph->program(), phases, depth);
    EXPECT_THAT(fold.edges, Not(IsEmpty()));
    for (const BoxEdge& edge : fold.edges) {
      EXPECT_LT(edge.from, edge.to) << "a cycle, at depth " << depth;
      EXPECT_LE(fold.boxes[edge.from].phase, fold.boxes[edge.to].phase);
    }
    std::vector<int> times(graph->program().nodes.size(), 0);
    for (const Box& box : fold.boxes) {
      for (NodeId n : box.nodes) ++times[static_cast<size_t>(n)];
    }
    for (size_t n = 0; n < times.size(); ++n) {
      const OpDef* op = graph->program().nodes[n].op;
      EXPECT_EQ(times[n], op == &kParameterOp || op == &kConstantOp ? 0 : 1) << "node " << n << ", depth " << depth;
    }
  }
  const Fold fold = FoldByScope(graph->program(), phases, 2);
  for (int layer = 0; layer < 12; ++layer) {
    for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
      int boxes = 0;
      for (const Box& box : fold.boxes) {
        boxes += box.scope == absl::StrCat("gpt/h.", layer) && box.phase == phase;
      }
      EXPECT_EQ(boxes, 1) << Name(phase) << " of layer " << layer;
    }
  }
  int updates = 0;
  for (const Box& box : fold.boxes) updates += box.phase == Phase::kUpdate;
  EXPECT_EQ(updates, 1);
}

}  // namespace
}  // namespace weft
