#include "weft/graph/compile/passes/rewriting.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/ops.h"
#include "weft/tests/op_names.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

TEST(UsesTest, CountsReadersRootsAndGradients) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {}});
  const Var twice = Exp(x), once = twice * twice, loss = Tanh(once), unread = Log(x);
  const Var gradient = Gradient(loss, {twice})[0];
  const Uses uses({.program = tape.program(), .roots = {gradient.id, loss.id}});
  EXPECT_EQ(uses.count(x.id), 2);
  EXPECT_EQ(uses.count(twice.id), 3);  // by both factors and by the gradient
  EXPECT_EQ(uses.count(loss.id), 2);
  EXPECT_EQ(uses.count(unread.id), 0);
  EXPECT_EQ(uses.OnlyReader(once.id), tape.program().value(loss.id).producer);
  EXPECT_EQ(uses.OnlyReader(twice.id), kNoNode);
  EXPECT_EQ(uses.OnlyReader(gradient.id), kNoNode) << "it is fetched";
  EXPECT_TRUE(uses.fetched(loss.id));
  EXPECT_FALSE(uses.fetched(once.id));
  EXPECT_TRUE(uses.differentiated_by(twice.id));
  EXPECT_FALSE(uses.differentiated_by(loss.id));
}

TEST(ReplayTest, CopiesReplacesAndMapsTheRoots) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  const Var y = Tanh(Exp(x));
  Rewrite rewrite = {.program = tape.program(), .roots = {y.id, x.id}};
  Replay replay(rewrite);
  const absl::Status status = replay.Record([&](const Node& node) -> VarList {
    if (node.op != &kExp) return {};
    return {Log(Abs(replay.Now(node.inputs)[0]))};
  });
  ASSERT_TRUE(status.ok()) << status;
  replay.Finish();
  EXPECT_THAT(OpNames(rewrite.program), ElementsAre("input", "abs", "log", "tanh"));
  EXPECT_EQ(rewrite.program.producer(rewrite.roots[0]).op, &kTanh);
  EXPECT_EQ(rewrite.program.producer(rewrite.roots[1]).op, &kInputOp);
}

TEST(ReplayTest, ANodeReplacedBeforeItsTurnIsSkipped) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  const Var first = Exp(x), second = Tanh(x), sum = first + second;
  Rewrite rewrite = {.program = tape.program(), .roots = {sum.id}};
  Replay replay(rewrite);
  const absl::Status status = replay.Record([&](const Node& node) -> VarList {
    if (node.op != &kExp) return {};
    const Node& ahead = replay.program().producer(second.id);
    replay.Replace(ahead, replay.Copy(ahead));
    return {};
  });
  ASSERT_TRUE(status.ok()) << status;
  replay.Finish();
  EXPECT_THAT(OpNames(rewrite.program), ElementsAre("input", "tanh", "exp", "add"));
}

TEST(ReplayTest, ReturnsTheFirstRecordingError) {
  Tape tape;
  const Var y = Exp(tape.Input("x", {kF32, {2}}));
  Rewrite rewrite = {.program = tape.program(), .roots = {y.id}};
  Replay replay(rewrite);
  const absl::Status status = replay.Record([&](const Node& node) -> VarList {
    if (node.op != &kExp) return {};
    return {Reshape(replay.Now(node.inputs)[0], {3})};
  });
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("reshape"));
}

TEST(RenamesTest, ApplyToLaterNodesAndToRoots) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  const Var y = Exp(Log(x));
  Rewrite rewrite = {.program = tape.program(), .roots = {y.id}};
  Renames renames(rewrite.program);
  for (Node& node : rewrite.program.nodes) {
    renames.Apply(node);
    if (node.op == &kLog) renames.Rename(node.output(0), node.inputs[0]);
  }
  EXPECT_THAT(rewrite.program.producer(y.id).inputs, ElementsAre(x.id));
  renames.Rename(y.id, x.id);
  renames.Apply(rewrite.roots);
  EXPECT_THAT(rewrite.roots, ElementsAre(x.id));
}

TEST(ReorderTest, MovesNodesAndTheirValuesProducers) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  const Var first = Exp(x), second = Tanh(x), third = Log(x);
  Program program = tape.program();
  Reorder(&program, {0, 3, 2, 2});
  EXPECT_THAT(OpNames(program), ElementsAre("input", "tanh", "log", "exp"));
  EXPECT_EQ(program.value(first.id).producer, NodeId{3});
  EXPECT_EQ(program.producer(second.id).op, &kTanh);
  EXPECT_EQ(program.producer(third.id).op, &kLog);
}

}  // namespace
}  // namespace weft
