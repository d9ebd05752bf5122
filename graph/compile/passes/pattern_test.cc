#include "weft/graph/compile/passes/pattern.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/passes/passes.h"
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

// The first rule leaves all nodes alone. The second one records an op before it does so.
TEST(PatternTest, AProgramStaysAsItIsIfNoRuleMatches) {
  Tape tape;
  const Var y = Exp(Tanh(tape.Input("x", {kF32, {6}})));
  const auto records = [](PatternRewriter& r, const Node& exp) {
    Tanh(r.Now(exp.inputs[0]));
    return VarList{};
  };
  for (const PatternRule& rule : {kRule, PatternRule{&kExp, "records", records}}) {
    Rewrite rewrite = {.program = tape.program(), .roots = {y.id}};
    const Node* const nodes = rewrite.program.nodes.data();
    ASSERT_TRUE(RewritePatterns(rewrite, {rule}).ok());
    EXPECT_EQ(rewrite.program.nodes.data(), nodes) << rule.pattern << ": the program was copied";
    EXPECT_THAT(OpNames(rewrite.program), ElementsAre("input", "tanh", "exp"));
  }
}

// The rule records an op for each exp, but replaces only the exp of a logarithm.
TEST(PatternTest, WhatARuleRecordsBeforeItDeclinesIsDropped) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {6}});
  const Var y = Exp(Log(Exp(x)));
  const auto records = [](PatternRewriter& r, const Node& exp) {
    Tanh(r.Now(exp.inputs[0]));
    return RaiseExpLog(r, exp);
  };
  EXPECT_THAT(Apply(tape, {y.id}, {&kExp, "exp of log", records}).ops, ElementsAre("input", "exp"));
}

TEST(PatternTest, AReplacementIsInTheScopeOfTheLastNode) {
  Tape tape;
  VarList ends;
  for (const char* name : {"first", "second"}) {
    const Scope scope(&tape, name);
    ends.push_back(Tanh(Exp(Log(tape.Input(name, {kF32, {6}})))));
  }
  const auto negates = [](PatternRewriter& r, const Node& exp) {
    const Scope inner(r.tape(), "inner");
    return VarList{Neg(r.Now(r.producer(exp.inputs[0]).inputs[0]))};
  };
  Rewrite rewrite = {.program = tape.program(), .roots = {ends[0].id, ends[1].id}};
  ASSERT_TRUE(RewritePatterns(rewrite, {{&kExp, nullptr, negates}}).ok());
  std::vector<std::string> scopes;
  for (const Node& node : rewrite.program.nodes) scopes.push_back(rewrite.program.scope(node));
  EXPECT_THAT(scopes, ElementsAre("first", "first/inner", "first", "second", "second/inner", "second"));
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
  const Scope scope(&tape, "h");
  const Var y = Exp(x);
  const auto wrong = [](PatternRewriter& r, const Node& exp) { return VarList{Reshape(r.Now(exp.inputs[0]), {2, 3})}; };
  const PatternRule rule = {&kExp, "wrong", wrong};
  Rewrite rewrite = {.program = tape.program(), .roots = {y.id}};
  EXPECT_EQ(RewritePatterns(rewrite, {rule}).message(),
            "a rule of exp: output 0 has a replacement of another type, or is used and has no replacement; at h");
}

TEST(PatternTest, Numbers) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  const float values[] = {0.5f, 0.5f, 3.0f};
  const auto constant = [&](int from, int64_t n) {
    return tape.Constant({{kF32, {n}}, reinterpret_cast<std::byte*>(const_cast<float*>(values + from))});
  };
  const Var half = constant(0, 2), other = constant(1, 2);
  const Var scaled = Scale(BroadcastTo(Reshape(Number(x, 3), {1}), {2}), 2);
  Rewrite rewrite = {.program = tape.program()};
  const PatternRewriter r(rewrite);
  EXPECT_EQ(MatchNumber(r, half.id), 0.5);
  EXPECT_EQ(MatchNumber(r, scaled.id), 6.0);
  EXPECT_FALSE(MatchNumber(r, other.id).has_value());
  EXPECT_FALSE(MatchNumber(r, x.id).has_value());
}

// A pattern that absorbed such a number would lose the gradient.
TEST(PatternTest, WhatAGradientIsTakenByIsNoNumber) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}}), half = Number(x, 0.5), whole = BroadcastTo(half, {2}), y = x * whole;
  const Var gradient = Gradient(Sum(y), {half})[0];
  Rewrite rewrite = {.program = tape.program(), .roots = {gradient.id}};
  const PatternRewriter r(rewrite);
  for (const Var number : {half, whole}) EXPECT_FALSE(MatchNumber(r, number.id).has_value());
  EXPECT_FALSE(MatchScaled(r, y.id).has_value());
}

TEST(PatternTest, OneScaleInEachSpelling) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}}), half = Number(x, 0.5);
  const VarList scales = {Scale(x, 0.5), Mul(x, half), Mul(half, x), x / 2.0};
  const VarList others = {x * x, 2.0 / x, x + half, x};
  Rewrite rewrite = {.program = tape.program()};
  const PatternRewriter r(rewrite);
  for (const Var y : scales) {
    const auto scaled = MatchScaled(r, y.id);
    ASSERT_TRUE(scaled.has_value());
    EXPECT_EQ(scaled->factor, 0.5);
    EXPECT_EQ(scaled->x, x.id);
  }
  for (const Var y : others) EXPECT_FALSE(MatchScaled(r, y.id).has_value());
}

TEST(PatternTest, SumsWithNumbers) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2, 2}}), twice = x + x;
  const VarList sums = {x + 3.0, 3.0 + x};
  Rewrite rewrite = {.program = tape.program()};
  const PatternRewriter r(rewrite);
  for (const Var y : sums) {
    const auto shifted = MatchShifted(r, y.id);
    ASSERT_TRUE(shifted.has_value());
    EXPECT_EQ(shifted->number, 3);
    EXPECT_EQ(shifted->x, x.id);
  }
  EXPECT_FALSE(MatchShifted(r, twice.id).has_value());
}

TEST(PatternTest, APatternCollectsWhatItPasses) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {6}});
  const Var scaled = Scale(x, 2), reshaped = Reshape(scaled, {2, 3}), divided = reshaped / 8.0;
  Rewrite rewrite = {.program = tape.program()};
  const PatternRewriter rewriter(rewrite);
  Pattern pattern(rewriter);
  const Scaled all = pattern.BeforeScales(divided.id);
  EXPECT_EQ(all.factor, 0.25);
  EXPECT_EQ(all.x, x.id);
  EXPECT_THAT(pattern.inside(), ElementsAre(divided.id, reshaped.id, scaled.id));
}

}  // namespace
}  // namespace weft
