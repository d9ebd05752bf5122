#include "weft/graph/passes/pattern.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/passes/matchers.h"
#include "weft/graph/passes/passes.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/ops.h"
#include "weft/tests/op_names.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

// Rewrite exp(log(x)) to x, through reshapes.
VarList RaiseExpLog(PatternRewriter& r, const Node& exp) {
  const Node& log = r.producer(SkipReshapes(r, exp.inputs[0]));
  if (log.op != &kLog) return {};
  if (!r.uses().OnlyOne(log.output(0))) return r.Decline(exp, "exp of log", "the logarithm has other users");
  if (r.UnderTwoGradients(exp)) return r.Decline(exp, "exp of log", "it is differentiated twice");
  return {Reshape(r.Now(log.inputs[0]), r.type(exp.output(0)).shape)};
}
constexpr PatternRule kRule = {&kExp, "exp of log", RaiseExpLog};

struct Result {
  std::vector<std::string> ops, explanations;
};
Result Apply(const Tape& tape, std::vector<ValueId> roots, const PatternRule& rule = kRule) {
  Rewrite rewrite = {.program = tape.program(), .roots = std::move(roots)};
  const absl::Status status = RewritePatterns(rewrite, {rule});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(Typecheck(rewrite).ok());
  Result result = {.ops = OpNames(rewrite.program)};
  for (const Explanation& e : rewrite.explanations) {
    result.explanations.push_back(e.scope + ": " + (e.declined.empty() ? "raised" : e.declined));
  }
  return result;
}

TEST(PatternTest, ReplacesTheLastNodeAndDropsTheRest) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {6}});
  const Scope scope(&tape, "h");
  const Var y = Tanh(Exp(Reshape(Log(x), {2, 3})));
  const Result result = Apply(tape, {y.id});
  EXPECT_THAT(result.ops, ElementsAre("input", "reshape", "tanh"));
  EXPECT_THAT(result.explanations, ElementsAre("h: raised"));
}

TEST(PatternTest, SaysWhyItLeavesOneAlone) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {6}});
  const Var log = Log(x), y = Exp(log);
  const Result result = Apply(tape, {y.id, log.id});  // fetching is a use
  EXPECT_THAT(result.ops, ElementsAre("input", "log", "exp"));
  EXPECT_THAT(result.explanations, ElementsAre(": the logarithm has other users"));
}

TEST(PatternTest, TakingAGradientByAValueIsAUse) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {}});
  const Var log = Log(x), y = Exp(log);
  EXPECT_THAT(Apply(tape, {Gradient(y, {log})[0].id}).explanations, ElementsAre(": the logarithm has other users"));
}

TEST(PatternTest, KnowsWhatIsDifferentiatedTwice) {
  for (const bool twice : {false, true}) {
    Tape tape;
    const Var x = tape.Parameter("x", {kF32, {}}, Ones());
    const Var loss = Exp(Log(x));
    Var gradient = Gradient(loss, {x})[0];
    if (twice) gradient = Gradient(gradient * gradient, {x})[0];
    EXPECT_THAT(Apply(tape, {gradient.id}).explanations,
                ElementsAre(twice ? ": it is differentiated twice" : ": raised"));
  }
}

// A second step on the same tape differentiates values that depend on the first step's write. Gradients do not flow
// through the write.
TEST(PatternTest, AStepAfterAnotherIsNotDifferentiatedTwice) {
  Tape tape;
  Var w = tape.Parameter("w", {kF32, {}}, Ones());
  for (int step = 0; step < 2; ++step) w = Assign(w, w - Gradient(Exp(Log(w)), {w})[0]);
  EXPECT_THAT(Apply(tape, {w.id}).explanations, ElementsAre(": raised", ": raised"));
}

TEST(PatternTest, ARuleThatChangesATypeIsAnError) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {6}});
  const Var y = Exp(x);
  const auto wrong = [](PatternRewriter& r, const Node& exp) { return VarList{Reshape(r.Now(exp.inputs[0]), {2, 3})}; };
  const PatternRule rule = {&kExp, "wrong", wrong};
  Rewrite rewrite = {.program = tape.program(), .roots = {y.id}};
  EXPECT_THAT(std::string(RewritePatterns(rewrite, {rule}).message()),
              ::testing::HasSubstr("a rule of exp: output 0 has a replacement of another type"));
}

}  // namespace
}  // namespace weft
