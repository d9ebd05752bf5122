// Tests Optimizer::Update, which takes gradients from its caller, and the options of an update: a factor that allows
// the step, updates of all weights or none, and moving averages of weights.
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

using Values = std::map<std::string, std::vector<float>>;

// A program that updates a matrix "w" of fours and a bias "b" of twos. Each gradient is a fed number in all elements.
class Program {
 public:
  void Record(const Optimizer& optimizer, UpdateOptions options, bool with_allowed = false) {
    if (with_allowed) options.allowed = allowed_;
    step_ = optimizer.Update({w_, b_}, {Gradient(w_, w_slope_), Gradient(b_, b_slope_)}, rate_, options);
  }
  void Start() {
    const absl::StatusOr<Graph> graph = Compile(tape_, {.fetch = {step_.gradient_norm}, .update = {step_}});
    ASSERT_TRUE(graph.ok()) << graph.status();
    runner_.emplace(*graph, &parameters_);
  }
  void Step(float w_slope, float b_slope, float allowed = 1) {
    std::vector<FeedPair> feeds = {{rate_, 0.5f}, {w_slope_, w_slope}, {b_slope_, b_slope}, {allowed_, allowed}};
    const absl::StatusOr<Outputs> out = runner_->Run(feeds);
    ASSERT_TRUE(out.ok()) << out.status();
    norm_ = (*out)[step_.gradient_norm].span<const float>()[0];
  }
  double norm() const { return norm_; }
  Values All() const {
    Values values;
    for (const std::string& name : parameters_.Names()) {
      const absl::Span<const float> span = parameters_.Find(name)->span<const float>();
      values[name] = {span.begin(), span.end()};
    }
    return values;
  }
  float First(const char* name) const { return parameters_.Find(name)->span<const float>()[0]; }
  Tape& tape() { return tape_; }
  Var w() const { return w_; }
  Var b() const { return b_; }
  Var rate() const { return rate_; }

 private:
  static Var Gradient(Var weight, Var slope) { return BroadcastTo(slope, weight.shape()); }

  Tape tape_;
  Var rate_ = tape_.Input("rate", {kF32, {}}), w_slope_ = tape_.Input("w_slope", {kF32, {}}),
      b_slope_ = tape_.Input("b_slope", {kF32, {}}), allowed_ = tape_.Input("allowed", {kF32, {}}),
      w_ = tape_.Parameter("w", {kF32, {2, 2}}, Constant(4)), b_ = tape_.Parameter("b", {kF32, {3}}, Constant(2));
  Minimized step_;
  double norm_ = 0;
  Parameters parameters_;
  std::optional<Runner> runner_;
};

TEST(OptimizerUpdateTest, AppliesTheCallersGradients) {
  Program p;
  p.Record(Sgd({}), {});
  p.Start();
  p.Step(2, 1);
  EXPECT_EQ(p.First("w"), 3);
  EXPECT_EQ(p.First("b"), 1.5);
}

TEST(OptimizerUpdateTest, AllowedScalesGradientsAndItsNanChangesNothing) {
  for (const OptimizerRow& row : Optimizers()) {
    for (const double clip : {0, 100}) {
      Program p;
      p.Record(Optimizer(row, {.clip = clip}), {.average_decay = 0.5}, /*with_allowed=*/true);
      p.Start();
      p.Step(2, 1);
      const Values before = p.All();
      p.Step(2, 1, kNan);
      EXPECT_EQ(p.All(), before) << row.name << " clip " << clip;
      p.Step(2, 1);
      EXPECT_NE(p.All(), before) << row.name << " clip " << clip;
    }
  }
  Program p;
  p.Record(Sgd({}), {}, /*with_allowed=*/true);
  p.Start();
  p.Step(2, 1, 0.25f);
  EXPECT_EQ(p.First("w"), 4 - 0.25f);
}

TEST(OptimizerUpdateTest, AllOrNone) {
  for (const OptimizerRow& row : Optimizers()) {
    for (const bool all_or_none : {false, true}) {
      Program p;
      p.Record(Optimizer(row, {}), {.all_or_none = all_or_none, .average_decay = 0.5});
      p.Start();
      p.Step(2, 1);
      const Values before = p.All();
      p.Step(kInfinity, 1);
      EXPECT_EQ(p.First("w"), before.at("w")[0]) << row.name;
      EXPECT_EQ(p.First("b") == before.at("b")[0], all_or_none) << row.name;
      EXPECT_EQ(p.All() == before, all_or_none) << row.name;
    }
  }
}

// e is w after the first update, and then moves by 1 - d of the way to w.
TEST(OptimizerUpdateTest, AveragesWeights) {
  Program p;
  p.Record(Sgd({}), {.all_or_none = true, .average_decay = 0.75});
  p.Start();
  p.Step(kNan, 1);
  EXPECT_EQ(p.First("ema.w"), 0);
  EXPECT_EQ(p.First("ema_started"), 0);
  p.Step(2, 1);  // w = 3, b = 1.5
  EXPECT_EQ(p.First("ema.w"), 3);
  EXPECT_EQ(p.First("ema.b"), 1.5);
  EXPECT_EQ(p.First("ema_started"), 1);
  p.Step(2, 1);  // w = 2
  EXPECT_EQ(p.First("ema.w"), 2.75);
  p.Step(kNan, 1);
  EXPECT_EQ(p.First("ema.w"), 2.75);
  p.Step(2, 1);  // w = 1
  EXPECT_EQ(p.First("ema.w"), 2.75 - 1.75 / 4);
}

// The bits of Minimize are those of Update with the same gradients.
TEST(OptimizerUpdateTest, MinimizeUpdatesByTheLossesGradients) {
  for (const OptimizerRow& row : Optimizers()) {
    std::vector<Values> results;
    for (const bool minimize : {false, true}) {
      Tape tape;
      const Var rate = tape.Input("rate", {kF32, {}}), w = tape.Parameter("w", {kF32, {2, 2}}, Gaussian(1));
      const Var loss = Sum(Square(w));
      const Optimizer optimizer(row, {.clip = 1});
      const Var update = minimize
                             ? optimizer.Minimize(loss, rate)
                             : optimizer.Update(optimizer.TrainedWeights(&tape), Gradient(loss, tape.Weights()), rate);
      const absl::StatusOr<Graph> graph = Compile(tape, {.update = {update}});
      ASSERT_TRUE(graph.ok()) << graph.status();
      Parameters parameters({.seed = 1});
      Runner runner(*graph, &parameters);
      for (int step = 0; step < 3; ++step) ASSERT_TRUE(runner.Run({{rate, 0.1f}}).ok());
      const absl::Span<const float> span = parameters.Find("w")->span<const float>();
      results.push_back({{"w", {span.begin(), span.end()}}});
    }
    EXPECT_EQ(results[0], results[1]) << row.name;
  }
}

// An element of more than the maximum has the maximum. The norm that is reported is that before clipping; the norm that
// is clipped is that of the clipped elements.
TEST(OptimizerUpdateTest, ClipsByValueBeforeNorm) {
  for (const double clip : {0.0, 1.0}) {
    Program p;
    p.Record(Sgd({.clip = clip, .clip_value = 1.5}), {});
    p.Start();
    p.Step(10, -1);
    const double norm = std::sqrt(4 * 1.5 * 1.5 + 3), scale = clip > 0 ? 1 / (norm + 1e-6) : 1;
    EXPECT_NEAR(p.First("w"), 4 - 0.5 * scale * 1.5, 1e-6);
    EXPECT_NEAR(p.First("b"), 2 + 0.5 * scale, 1e-6);
    EXPECT_NEAR(p.norm(), std::sqrt(4 * 100 + 3), 1e-5);
    const Values before = p.All();
    p.Step(kInfinity, 1);
    EXPECT_EQ(p.First("w"), before.at("w")[0]);
    EXPECT_EQ(p.First("b") == before.at("b")[0], clip > 0);
  }
}

TEST(OptimizerUpdateTest, GroupsScaleRatesAndReplaceDecay) {
  Program p;
  p.Record(Sgd({.weight_decay = 0.25, .groups = {{.pattern = "w", .rate_scale = 0.5, .weight_decay = 0}}}), {});
  p.Start();
  p.Step(2, 1);
  EXPECT_EQ(p.First("w"), 4 - 0.25f * 2);
  EXPECT_EQ(p.First("b"), 2 - 0.5f * (1 + 0.25f * 2));
}

// A group's decay holds for vectors, too, which AdamW does not decay otherwise.
TEST(OptimizerUpdateTest, GroupsDecayVectors) {
  Program p;
  p.Record(AdamW({.groups = {{.pattern = "b", .weight_decay = 0.5}}}), {});
  p.Start();
  p.Step(2, 0);
  EXPECT_FLOAT_EQ(p.First("b"), 2 * (1 - 0.5 * 0.5));
}

TEST(OptimizerUpdateTest, FrozenWeightsHaveNeitherGradientsNorStates) {
  Tape tape;
  const Var rate = tape.Input("rate", {kF32, {}}), w = tape.Parameter("w", {kF32, {2, 2}}, Constant(4)),
            b = tape.Parameter("b", {kF32, {2}}, Constant(2));
  const Optimizer half = AdamW({.groups = {{.pattern = "b"}, {.pattern = "*", .frozen = true}}});
  const Var loss = Sum(Square(w)) + Sum(Square(b));
  const Minimized step = half.Minimize(loss, rate, {.average_decay = 0.5});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss}, .update = {step}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  ASSERT_TRUE(runner.Run({{rate, 0.1f}}).ok());
  EXPECT_THAT(parameters.Names(),
              testing::UnorderedElementsAre("adamw.m.b", "adamw.step", "adamw.v.b", "b", "ema.b", "ema_started", "w"));
  EXPECT_EQ(parameters.Find("w")->span<const float>()[0], 4);
  EXPECT_NE(parameters.Find("b")->span<const float>()[0], 2);
}

TEST(OptimizerUpdateTest, APatternMustMatchAWeight) {
  Tape tape;
  const Var rate = tape.Input("rate", {kF32, {}}), w = tape.Parameter("w", {kF32, {2}}, Constant(4));
  Sgd({.groups = {{.pattern = "v*", .frozen = true}}}).Minimize(Sum(w), rate);
  EXPECT_THAT(std::string(tape.status().message()),
              testing::HasSubstr("sgd: groups: 'v*' matches none of the 1 weights, such as 'w'"));
}

TEST(OptimizerUpdateTest, Errors) {
  const struct {
    const char* error;
    void (*record)(Program& p);
  } kRows[] = {
      {"sgd: 1 gradients for 2 weights",
       [](Program& p) {
         Sgd({}).Update({p.w(), p.b()}, {p.w()}, p.rate());
       }},
      {"sgd: gradient 0 is f32[3], but the weight is f32[2,2]",
       [](Program& p) { Sgd({}).Update({p.w()}, {p.b()}, p.rate()); }},
      {"sgd: weight 0 is not a parameter", [](Program& p) { Sgd({}).Update({p.rate()}, {p.rate()}, p.rate()); }},
      {"sgd: average_decay = 1, wanted in [0, 1)",
       [](Program& p) { Sgd({}).Update({p.w()}, {p.w()}, p.rate(), {.average_decay = 1}); }},
      {"sgd: allowed is f32[3], wanted f32[]",
       [](Program& p) { Sgd({}).Update({p.w()}, {p.w()}, p.rate(), {.allowed = p.b()}); }},
      {"sgd: clip_value = -1, wanted >= 0, finite",
       [](Program& p) { Sgd({.clip_value = -1}).Update({p.w()}, {p.w()}, p.rate()); }},
      {"sgd: weight 'b' is frozen",
       [](Program& p) { Sgd({.groups = {{.pattern = "b", .frozen = true}}}).Update({p.b()}, {p.b()}, p.rate()); }},
      {"sgd: the tape has no weights", [](Program& p) { Sgd({}).Update({}, {}, p.rate()); }},
  };
  for (const auto& [error, record] : kRows) {
    Program p;
    record(p);
    EXPECT_THAT(std::string(p.tape().status().message()), testing::HasSubstr(error));
  }
}

}  // namespace
}  // namespace weft
