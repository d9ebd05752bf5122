#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the values of the scalars `vars` if `input`, the tape's only input, is `x`.
std::vector<double> Scalars(const Tape& tape, Var input, float x, const VarList& vars) {
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = vars});
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  Parameters parameters;
  Runner runner(*graph, &parameters, {.threads = 1});
  const absl::StatusOr<Outputs> out = runner.Run({{input, x}});
  EXPECT_TRUE(out.ok()) << out.status();
  if (!out.ok()) return {};
  std::vector<double> values;
  for (Var v : vars) values.push_back(out->Scalar(v));
  return values;
}

TEST(GradientTest, SumsRepeatedUses) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {}});
  const Var y = x * x + x;
  const Var loss = y * x;  // x³ + x²
  EXPECT_THAT(Scalars(tape, x, 2, {Gradient(loss, {x})[0]}), ElementsAre(3 * 4 + 2 * 2));
}

TEST(GradientTest, NestsToAnyOrder) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {}});
  VarList derivatives = {x * x * x * x};
  for (int order = 1; order <= 4; ++order) derivatives.push_back(Gradient(derivatives.back(), {x})[0]);
  EXPECT_THAT(Scalars(tape, x, 3, derivatives), ElementsAre(81, 4 * 27, 12 * 9, 24 * 3, 24));
}

TEST(GradientTest, ByAValueInTheMiddle) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {}});
  const Var h = x * x;
  const Var loss = h * h;
  EXPECT_THAT(Scalars(tape, x, 2, Gradient(loss, {h, x})), ElementsAre(8, 32));
}

TEST(GradientTest, PartialGradientsTakeVariablesAsIndependent) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {}});
  const Var h = x * x;
  const Var loss = h * h + x * x * x;
  const VarList partial = tape.Record(kGradientOp, Attrs::Of(GradientAttrs{.partial = true}), {loss, h, x});
  const VarList total = Gradient(loss, {h, x});
  EXPECT_THAT(Scalars(tape, x, 2, {partial[0], partial[1], total[0], total[1]}), ElementsAre(8, 12, 8, 32 + 12));
}

TEST(GradientTest, IsZeroWhereTheLossDoesNotDepend) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {}});
  const Var other = x * x;
  EXPECT_THAT(Scalars(tape, x, 2, Gradient(x * 3.0, {other})), ElementsAre(0));
}

TEST(GradientTest, RefusesLossesThatAreNoFloatScalar) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {2}});
  Gradient(x, {x});
  EXPECT_THAT(tape.status().message(), HasSubstr("the loss must be a float scalar, not f32[2]"));
}

TEST(GradientTest, RefusesToGoThroughAWrite) {
  Tape tape;
  const Var w = tape.Parameter("w", {kF32, {}}, Ones());
  const Var next = Assign(w, w * 2.0);
  const Var gradient = Gradient(next * next, {w})[0];
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {gradient}});
  EXPECT_THAT(graph.status().message(), HasSubstr("assign: no gradient, because a write can't be differentiated"));
}

absl::StatusOr<Types> SameType(const Attrs&, TypeSpan in) { return Types{in[0]}; }
void Copy(const KernelArgs& a, Rect) { *a.output<float>(0) = *a.input<float>(0); }

constexpr OpDef kWrongCount = {
    .name = "wrong_count", .infer = SameType, .kernels = {Copy}, .gradient = [](const GradientArgs&) {
      return VarList{};
    }};
constexpr OpDef kWrongType = {
    .name = "wrong_type", .infer = SameType, .kernels = {Copy}, .gradient = [](const GradientArgs& a) {
      return VarList{Reshape(a.grad(0), {1})};
    }};

constexpr OpDef kNoRule = {.name = "no_rule", .infer = SameType, .kernels = {Copy}};

TEST(GradientTest, SaysThatAnOpHasNoRule) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {}});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {Gradient(Record(kNoRule, {x}), {x})[0]}});
  EXPECT_THAT(graph.status().message(), HasSubstr("no_rule: its OpDef has neither a gradient"));
}

TEST(GradientTest, CatchesAWrongCountAndAWrongTypeOfAnyOp) {
  for (const OpDef* op : {&kWrongCount, &kWrongType}) {
    Tape tape;
    const Var x = tape.Input("x", {kF32, {}});
    const Var gradient = Gradient(Record(*op, {x}), {x})[0];
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {gradient}});
    EXPECT_THAT(graph.status().message(),
                HasSubstr(op == &kWrongCount ? "its gradient gave 0 values for 1 inputs"
                                             : "its gradient by input 0 is f32[1], wanted f32[]"));
  }
}

TEST(GradientTest, ByEachOfTwoEqualValuesIsOfItsOwnUses) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {}});
  const Var first = x * 2.0, second = x * 2.0;
  const VarList gradients = Gradient(first * 3.0 + second * 5.0, {first, second});
  EXPECT_THAT(Scalars(tape, x, 2, gradients), ElementsAre(3, 5));
}

TEST(GradientTest, ByWhatEvalModeLeavesOutIsOfItsOwnUses) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {}});
  const Var dropped = Dropout(x, 0.5);
  const Var gradient = Gradient(dropped * dropped + x, {dropped})[0];
  const Graph graph = *Compile(tape, {.fetch = {gradient}, .mode = kEval});
  Parameters parameters;
  Runner runner(graph, &parameters);
  EXPECT_EQ(runner.Run({{x, 3.0f}})->Scalar(gradient), 6);
}

constexpr OpDef kElementaryProduct = {
    .name = "elementary_product",
    .infer = SameType,
    .kernels = {[](const KernelArgs& a, Rect) { *a.output<float>(0) = *a.input<float>(0) * *a.input<float>(1); }},
    .elementary = [](const Attrs&, VarSpan in) { return VarList{in[0] * in[1]}; }};

TEST(GradientTest, AnElementarySpellingTakesOneVarTwice) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {}});
  EXPECT_THAT(Scalars(tape, x, 3, Gradient(Record(kElementaryProduct, {x, x}), {x})), ElementsAre(6));
}

}  // namespace
}  // namespace weft
