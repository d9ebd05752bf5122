// Compares three steps of each optimizer, on one matrix and one bias, with its formula in doubles.
#include "weft/train/optimize/optimizer.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

constexpr int kSteps = 3;
constexpr double kRate = 0.1, kDecay = 0.2;

// Returns a weight's next value from its value, gradient and step, and updates its states.
using Formula = std::function<double(double w, double g, int step, double decay, std::array<double, 2>* state)>;

void Check(const std::function<Minimized(Var loss, Var rate)>& minimize, bool decays_bias, const Formula& formula) {
  Tape tape;
  const Var rate = tape.Input("rate", {kF32, {}});
  const Var w = tape.Parameter("w", {kF32, {2, 2}}, Gaussian(1)), b = tape.Parameter("b", {kF32, {3}}, Gaussian(1));
  // d loss / d w = w², d loss / d b = b².
  const Var loss = Scale(Sum(Pow(w, 3)) + Sum(Pow(b, 3)), 1.0 / 3);
  const Minimized step = minimize(loss, rate);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {loss}, .update = {step}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 1});
  Runner runner(*graph, &parameters);
  struct Tracked {
    double value;
    std::array<double, 2> state = {};
  };
  std::map<std::string, std::vector<Tracked>> wanted;
  for (const char* name : {"w", "b"}) {
    for (float x : parameters.Find(name)->span<float>()) wanted[name].push_back({x});
  }
  for (int i = 1; i <= kSteps; ++i) {
    ASSERT_TRUE(runner.Run({{rate, static_cast<float>(kRate)}}).ok());
    for (auto& [name, values] : wanted) {
      for (Tracked& t : values) {
        t.value = formula(t.value, t.value * t.value, i, name == "w" || decays_bias ? kDecay : 0, &t.state);
      }
    }
  }
  for (auto& [name, values] : wanted) {
    const absl::Span<const float> got = parameters.Find(name)->span<const float>();
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(got[i], values[i].value, 2e-6) << name << " " << i;
  }
}

double AdamStep(double w, double g, double rate, int step, std::array<double, 2>* state) {
  auto& [m, v] = *state;
  m = 0.9 * m + 0.1 * g;
  v = 0.999 * v + 0.001 * g * g;
  return w - rate * (m / (1 - std::pow(0.9, step))) / (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8);
}

TEST(OptimizerTest, AdamWDecaysMatricesBesideTheGradient) {
  Check([](Var loss, Var rate) { return AdamW({.weight_decay = kDecay}).Minimize(loss, rate); }, false,
        [](double w, double g, int step, double decay, auto* state) {
          return AdamStep(w * (1 - kRate * decay), g, kRate, step, state);
        });
}

TEST(OptimizerTest, AdamDecaysAllInTheGradient) {
  Check([](Var loss, Var rate) { return Adam({.weight_decay = kDecay}).Minimize(loss, rate); }, true,
        [](double w, double g, int step, double decay, auto* state) {
          return AdamStep(w, g + decay * w, kRate, step, state);
        });
}

TEST(OptimizerTest, SgdLooksAheadAsNesterov) {
  const OptimizerSettings settings = {.momentum = 0.9, .weight_decay = kDecay, .nesterov = true};
  Check([&](Var loss, Var rate) { return Sgd(settings).Minimize(loss, rate); }, true,
        [](double w, double g, int, double decay, auto* state) {
          double& m = (*state)[0];
          g += decay * w;
          m = 0.9 * m + g;
          return w - kRate * (g + 0.9 * m);
        });
}

TEST(OptimizerTest, AdagradSumsSquares) {
  const OptimizerSettings settings = {.weight_decay = kDecay, .rate_decay = 0.5};
  Check([&](Var loss, Var rate) { return Adagrad(settings).Minimize(loss, rate); }, true,
        [](double w, double g, int step, double decay, auto* state) {
          double& sum = (*state)[0];
          g += decay * w;
          sum += g * g;
          return w - kRate / (1 + 0.5 * (step - 1)) * g / (std::sqrt(sum) + 1e-10);
        });
}

TEST(OptimizerTest, LionTakesStepsOfOneSize) {
  Check([](Var loss, Var rate) { return Lion({.weight_decay = kDecay}).Minimize(loss, rate); }, false,
        [](double w, double g, int, double decay, auto* state) {
          double& m = (*state)[0];
          const double ahead = 0.9 * m + 0.1 * g;
          m = 0.99 * m + 0.01 * g;
          return w - kRate * ((ahead > 0) - (ahead < 0) + decay * w);
        });
}

// A gradient that is not finite changes neither weight nor state, whatever the optimizer.
void CheckInfinite(double clip) {
  const std::function<Minimized(Var, Var)> all[] = {
      [&](Var loss, Var rate) { return AdamW({.clip = clip}).Minimize(loss, rate); },
      [&](Var loss, Var rate) { return Adam({.clip = clip}).Minimize(loss, rate); },
      [&](Var loss, Var rate) { return Sgd({.momentum = 0.9, .clip = clip}).Minimize(loss, rate); },
      [&](Var loss, Var rate) { return Adagrad({.clip = clip}).Minimize(loss, rate); },
      [&](Var loss, Var rate) { return Lion({.clip = clip}).Minimize(loss, rate); },
      [&](Var loss, Var rate) { return Muon({.clip = clip}).Minimize(loss, rate); },
      [&](Var loss, Var rate) { return Adafactor({.clip = clip}).Minimize(loss, rate); }};
  for (const auto& minimize : all) {
    Tape tape;
    const Var rate = tape.Input("rate", {kF32, {}}), factor = tape.Input("factor", {kF32, {}});
    const Var w = tape.Parameter("w", {kF32, {2, 2}}, Gaussian(1));
    const absl::StatusOr<Graph> graph = Compile(tape, {.update = {minimize(Sum(Square(w) * factor), rate)}});
    ASSERT_TRUE(graph.ok()) << graph.status();
    Parameters parameters({.seed = 1});
    Runner runner(*graph, &parameters);
    ASSERT_TRUE(runner.Run({{rate, 0.1f}, {factor, 1.0f}}).ok());
    std::map<std::string, std::vector<float>> before;
    for (const std::string& name : parameters.Names()) {
      const Tensor tensor = *parameters.Find(name);
      if (tensor.type.dtype == kF32)
        before[name] = {tensor.as<float>(), tensor.as<float>() + tensor.span<float>().size()};
    }
    ASSERT_TRUE(runner.Run({{rate, 0.1f}, {factor, std::numeric_limits<float>::infinity()}}).ok());
    for (const auto& [name, values] : before) {
      const absl::Span<const float> after = parameters.Find(name)->span<const float>();
      EXPECT_TRUE(std::equal(values.begin(), values.end(), after.begin())) << name;
    }
  }
}

TEST(OptimizerTest, AGradientThatIsNotFiniteChangesNothing) {
  for (double clip : {0, 1}) CheckInfinite(clip);
}

// Every row records a step with its default settings, and names its states after itself.
TEST(OptimizerTest, EveryRowIsUsable) {
  for (const OptimizerRow& row : Optimizers()) {
    EXPECT_EQ(FindOptimizer(row.name), &row);
    Tape tape;
    const Var rate = tape.Input("rate", {kF32, {}}), w = tape.Parameter("w", {kF32, {2, 2}}, Gaussian(1));
    Optimizer(row, {}).Minimize(Sum(Square(w)), rate);
    EXPECT_TRUE(tape.status().ok()) << tape.status();
    for (size_t i = 0; i < row.states.size(); ++i) {
      const bool has = row.state_type == nullptr || row.state_type(w.type(), /*is_hidden_matrix=*/true, i).has_value();
      EXPECT_EQ(tape.HasParameter(absl::StrCat(row.name, ".", row.states[i], ".w")), has) << row.name;
    }
    EXPECT_EQ(tape.HasParameter(absl::StrCat(row.name, ".step")), row.counts_steps) << row.name;
  }
  EXPECT_EQ(FindOptimizer("none"), nullptr);
}

// The optimizer "muon" updates matrices by Muon's rule. It updates vectors, embeddings and output layers by AdamW's
// rule, and so the weights of a parameter group with the setting `adamw`. Names tell embeddings and output layers.
TEST(OptimizerTest, MuonLeavesEmbeddingsAndOutputLayersToAdamW) {
  Tape tape;
  const Var rate = tape.Input("rate", {kF32, {}});
  Var loss;
  for (const char* name :
       {"h.0.mlp.weight", "own.weight", "wte.weight", "lm_head.weight", "embeddings.position.weight"}) {
    const Var sum = Sum(Square(tape.Parameter(name, {kF32, {2, 2}}, Gaussian(1))));
    loss = loss.tape != nullptr ? loss + sum : sum;
  }
  loss = loss + Sum(Square(tape.Parameter("h.0.mlp.bias", {kF32, {2}}, Gaussian(1))));
  Muon({.groups = {{.pattern = "own.*", .adamw = true}}}).Minimize(loss, rate);
  ASSERT_TRUE(tape.status().ok()) << tape.status();
  EXPECT_FALSE(tape.HasParameter("muon.v.h.0.mlp.weight"));
  for (const char* name :
       {"own.weight", "wte.weight", "lm_head.weight", "embeddings.position.weight", "h.0.mlp.bias"}) {
    EXPECT_TRUE(tape.HasParameter(absl::StrCat("muon.v.", name))) << name;
  }
}

// The precision of an update is that of its options, whether its gradients are those of a loss or inputs.
TEST(OptimizerTest, MuonMultipliesInTheGivenPrecision) {
  for (const DType precision : {kF32, kBF16}) {
    for (const bool inputs : {false, true}) {
      Tape tape;
      const DType dtype = inputs ? kF64 : kF32;
      const Var rate = tape.Input("rate", {kF32, {}}), w = tape.Parameter("w", {dtype, {4, 2}}, Gaussian(1));
      const Var gradient = tape.Input("gradient", w.type());
      const UpdateOptions options = {.precision = precision};
      const Minimized step = inputs ? Muon({}).Update({w}, {gradient}, rate, options)
                                    : Muon({}).Minimize(Sum(Square(w) * gradient), rate, options);
      const absl::StatusOr<Graph> graph = Compile(tape, {.update = {step}, .precision = precision});
      ASSERT_TRUE(graph.ok()) << graph.status();
      size_t products = 0;
      for (const Node& node : graph->program().nodes) {
        if (node.op->name != absl::string_view("matmul")) continue;
        EXPECT_EQ(graph->program().value(node.inputs[0]).type.dtype, precision == kBF16 ? kBF16 : dtype);
        ++products;
      }
      EXPECT_EQ(products, 15);
    }
  }
}

TEST(OptimizerTest, RefusesASettingThatItDoesNotHave) {
  Tape tape;
  const Var rate = tape.Input("rate", {kF32, {}}), w = tape.Parameter("w", {kF32, {2, 2}}, Gaussian(1));
  Lion({.momentum = 0.9}).Minimize(Sum(Square(w)), rate);
  EXPECT_THAT(std::string(tape.status().message()), testing::HasSubstr("lion: this optimizer has no momentum"));
}

TEST(OptimizerTest, OnlyMuonLeavesWeightsToAdamW) {
  Tape tape;
  const Var rate = tape.Input("rate", {kF32, {}}), w = tape.Parameter("w", {kF32, {2, 2}}, Gaussian(1));
  Lion({.groups = {{.pattern = "w", .adamw = true}}}).Minimize(Sum(Square(w)), rate);
  EXPECT_THAT(std::string(tape.status().message()),
              testing::HasSubstr("lion: the group 'w' has adamw, which belongs to muon"));
}

TEST(OptimizerTest, NeedsWeights) {
  Tape tape;
  const Var rate = tape.Input("rate", {kF32, {}}), x = tape.Input("x", {kF32, {2}});
  AdamW({}).Minimize(Sum(x), rate);
  EXPECT_THAT(std::string(tape.status().message()), testing::HasSubstr("adamw: the tape has no weights to update"));
}

}  // namespace
}  // namespace weft
