// Compares a Hessian-vector product of a two-layer GPT, the gradient of a gradient, with differences of its gradient.
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/gpt.h"

namespace weft {
namespace {

using Vectors = std::vector<std::vector<double>>;

double Dot(const Vectors& a, const Vectors& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < a[i].size(); ++k) sum += a[i][k] * b[i][k];
  }
  return sum;
}

Vectors Fetched(const Outputs& out, VarSpan vars) {
  Vectors values;
  for (Var var : vars) {
    const absl::Span<const float> of_var = out[var].span<const float>();
    values.emplace_back(of_var.begin(), of_var.end());
  }
  return values;
}

struct Program {
  explicit Program(const GptConfig& config) {
    tokens = tape.Input("tokens", {kI32, {3, 8}}, {.below = config.vocabulary});
    targets = tape.Input("targets", {kI32, {3, 8}}, {.below = config.vocabulary});
    const Var loss = CrossEntropy(Gpt(config).Logits(tokens), targets);
    weights = tape.Weights();
    gradients = Gradient(loss, weights);
    Var dot;
    for (size_t i = 0; i < weights.size(); ++i) {
      v.push_back(tape.Input("v" + std::to_string(i), weights[i].type()));
      const Var term = Sum(gradients[i] * v[i]);
      dot = i == 0 ? term : dot + term;
    }
    product = Gradient(dot, weights);
  }
  Tape tape;
  Var tokens, targets;
  VarList weights, gradients, v, product;
};

void Check(const GptConfig& config) {
  const Program p(config);
  const absl::StatusOr<Graph> first = Compile(p.tape, {.fetch = p.gradients}),
                              second = Compile(p.tape, {.fetch = p.product});
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  Parameters parameters({.seed = 1});
  Runner gradient(*first, &parameters), product(*second, &parameters, {.threads = 2});
  std::vector<FeedPair> feeds;
  std::vector<int32_t> x, y;
  for (int i = 0; i < 24; ++i) {
    x.push_back(i * i % 17);
    y.push_back((i + 1) * (i + 1) % 17);
  }
  feeds.push_back({p.tokens, x});
  feeds.push_back({p.targets, y});
  std::vector<std::vector<float>> directions;
  Vectors v;
  for (size_t i = 0; i < p.v.size(); ++i) {
    std::vector<float>& of_weight = directions.emplace_back(p.v[i].shape().elements());
    for (size_t k = 0; k < of_weight.size(); ++k) of_weight[k] = std::sin(1 + 0.7f * static_cast<float>(k + 3 * i));
    v.emplace_back(of_weight.begin(), of_weight.end());
  }
  for (size_t i = 0; i < p.v.size(); ++i) feeds.push_back({p.v[i], directions[i]});
  const absl::StatusOr<Outputs> out = product.Run(feeds);
  ASSERT_TRUE(out.ok()) << out.status();
  const Vectors hessian = Fetched(*out, p.product);

  // (g(w + h v) - g(w - h v)) / 2h, with an h (kH) that is accurate enough in f32.
  constexpr float kH = 2e-4f;
  Vectors differences(v.size());
  for (const float side : {1.0f, -1.0f}) {
    for (size_t i = 0; i < v.size(); ++i) {
      const absl::Span<float> w = parameters.Find(p.tape.ParameterName(p.weights[i]))->span<float>();
      for (size_t k = 0; k < w.size(); ++k) w[k] += side * (side > 0 ? 1 : 2) * kH * directions[i][k];
    }
    const absl::StatusOr<Outputs> g = gradient.Run(feeds);
    ASSERT_TRUE(g.ok()) << g.status();
    const Vectors at = Fetched(*g, p.gradients);
    for (size_t i = 0; i < at.size(); ++i) {
      differences[i].resize(at[i].size());
      for (size_t k = 0; k < at[i].size(); ++k) differences[i][k] += side * at[i][k] / (2 * kH);
    }
  }
  const double norm = std::sqrt(Dot(hessian, hessian));
  EXPECT_GT(norm, 0.1);
  Vectors off = hessian;
  for (size_t i = 0; i < off.size(); ++i) {
    for (size_t k = 0; k < off[i].size(); ++k) off[i][k] -= differences[i][k];
    EXPECT_LT(std::sqrt(Dot({off[i]}, {off[i]})), 5e-3 * std::sqrt(Dot({hessian[i]}, {hessian[i]})) + 1e-4 * norm)
        << p.tape.ParameterName(p.weights[i]);
  }
}

TEST(SecondOrderTest, HessianVectorProductOfAGpt) {
  Check({.vocabulary = 17, .context = 8, .layers = 2, .heads = 2, .width = 16});
}

// RMSNorm, gates, rotary positions and shared keys: the differences from GPT-2.
TEST(SecondOrderTest, HessianVectorProductOfALlama) {
  Check({.vocabulary = 17,
         .context = 8,
         .layers = 2,
         .heads = 4,
         .width = 16,
         .activation = Activation::kSilu,
         .bias = false,
         .norm = {.kind = NormKind::kRmsNorm},
         .gated = true,
         .attention = {.key_value_heads = 2, .rotary = RotaryLayout::kHalves},
         .names = GptConfig::Names::kLlama});
}

}  // namespace
}  // namespace weft
