// Tests the biases of attention scores by distance, and the sources that windows and dilations hide.
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/attention.h"

namespace weft {
namespace {

std::vector<float> Waves(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.7f * static_cast<float>(i));
  return values;
}

// The results of transformers 5.23's T5Attention._relative_position_bucket for 32 buckets and 128 positions.
TEST(AttentionBiasTest, BucketsAreThoseOfT5) {
  const int64_t distances[] = {-1000, -300, -128, -127, -100, -64, -33, -20, -16, -15, -9, -8,  -7,  -3, -1,
                               0,     1,    2,    7,    8,    9,   12,  20,  31,  50,  90, 128, 200, 500};
  const int64_t both[] = {15, 15, 15, 15, 15, 14, 12, 10, 10, 9,  8,  8,  7,  3, 1,
                          0,  17, 18, 23, 24, 24, 25, 26, 27, 29, 30, 31, 31, 31};
  const int64_t behind[] = {31, 31, 31, 31, 30, 26, 21, 17, 16, 15, 9, 8, 7, 3, 1};
  for (size_t i = 0; i < std::size(distances); ++i) {
    EXPECT_EQ(DistanceBucket(distances[i], 32, 128, /*both_sides=*/true), both[i]) << distances[i];
    EXPECT_EQ(DistanceBucket(distances[i], 32, 128, /*both_sides=*/false), i < std::size(behind) ? behind[i] : 0)
        << distances[i];
  }
}

// Head h of H, counted from 1, subtracts 2^(-8 h / H) from a score for each position of distance. With queries of 0 the
// scores are these biases alone.
TEST(AttentionBiasTest, DistancesCountAsAlibiHasThem) {
  const AttentionOptions options = {
      .heads = 2, .variant = {.distance_bias = DistanceBias::kAlibi}, .bias = false, .initializer = Zeros()};
  Tape tape;
  const Var x = tape.Input("x", {kF32, {1, 4, 8}});
  const Var y = MultiHeadAttention("", x, options);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 1});
  Runner runner(*graph, &parameters);  // creates them
  // Values and output are the identity.
  const absl::Span<float> packed = parameters.Find("c_attn.weight")->span<float>();
  const absl::Span<float> output = parameters.Find("c_proj.weight")->span<float>();
  std::fill(output.begin(), output.end(), 0.0f);
  for (int64_t i = 0; i < 8; ++i) packed[(16 + i) * 8 + i] = output[i * 8 + i] = 1;
  const std::vector<float> data = Waves(4 * 8);
  const absl::StatusOr<Outputs> out = runner.Run({{x, data}});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int t = 0; t < 4; ++t) {
    for (int c = 0; c < 8; ++c) {
      double total = 0, wanted = 0;
      for (int s = 0; s < 4; ++s) {
        const double weight = std::exp(-std::exp2(-8.0 * (c / 4 + 1) / 2) * std::abs(s - t));
        total += weight;
        wanted += weight * data[s * 8 + c];
      }
      EXPECT_NEAR((*out)[y].as<float>()[t * 8 + c], wanted / total, 1e-6);
    }
  }
}

// A target sees itself and two more sources, at distances 3 and 6.
TEST(AttentionBiasTest, ADilatedWindowLeavesOutWhatLiesBetween) {
  AttentionOptions options = {.heads = 1,
                              .causal = true,
                              .variant = {.patterns = {{.window = 3, .dilation = 3}}},
                              .initializer = Gaussian(0.5f)};
  Tape tape;
  const Var x = tape.Input("x", {kF32, {1, 12, 4}});
  const Var dilated = MultiHeadAttention("", x, options);
  options.variant.patterns.clear();
  Tape masked;
  bool hidden[12 * 12];
  for (int t = 0; t < 12; ++t) {
    for (int s = 0; s < 12; ++s) hidden[t * 12 + s] = !(s == t || s == t - 3 || s == t - 6);
  }
  const Var mask = masked.Input("mask", {kBool, {12, 12}}), same = masked.Input("x", {kF32, {1, 12, 4}});
  const Var wanted = MultiHeadAttention("", same, options, {.mask = mask});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {dilated}}),
                              reference = Compile(masked, {.fetch = {wanted}});
  ASSERT_TRUE(graph.ok() && reference.ok());
  Parameters parameters({.seed = 1});
  Runner runner(*graph, &parameters), masked_runner(*reference, &parameters);
  const std::vector<float> data = Waves(12 * 4);
  const absl::StatusOr<Outputs> got = runner.Run({{x, data}});
  const absl::StatusOr<Outputs> out =
      masked_runner.Run({{same, data}, {mask, absl::Span<const bool>(hidden, std::size(hidden))}});
  ASSERT_TRUE(got.ok() && out.ok());
  EXPECT_THAT((*got)[dilated].span<const float>(),
              testing::Pointwise(testing::FloatNear(1e-6f), (*out)[wanted].span<const float>()));
}

// A window becomes limits of the attention kernel, without an array of masks, and hides what the option says.
TEST(AttentionBiasTest, AWindowIsAPartOfTheKernel) {
  constexpr int64_t kTokens = 150, kWidth = 4;  // several blocks of the kernel
  for (const bool causal : {false, true}) {
    Tape tape;
    const Var x = tape.Input("x", {kF32, {1, kTokens, kWidth}});
    const Var y = MultiHeadAttention("", x, {.heads = 2, .causal = causal, .variant = {.patterns = {{.window = 70}}}});
    Tape masked;
    const Var same = masked.Input("x", x.type()), mask = masked.Input("mask", {kBool, {kTokens, kTokens}});
    const Var wanted = MultiHeadAttention("", same, {.heads = 2, .causal = causal}, {.mask = mask});
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}}), reference = Compile(masked, {.fetch = {wanted}});
    ASSERT_TRUE(graph.ok() && reference.ok());
    int attentions = 0;
    for (const Node& node : graph->compiled().program.nodes) {
      if (node.op->name != std::string("attention")) continue;
      ++attentions;
      EXPECT_EQ(node.inputs.size(), 3u) << "a mask";
    }
    EXPECT_EQ(attentions, 1);
    const auto hidden = std::make_unique<bool[]>(kTokens * kTokens);
    for (int64_t i = 0; i < kTokens * kTokens; ++i) hidden[i] = std::abs(i / kTokens - i % kTokens) >= 70;
    Parameters parameters({.seed = 1});
    Runner runner(*graph, &parameters), masked_runner(*reference, &parameters);
    const std::vector<float> data = Waves(kTokens * kWidth);
    const absl::StatusOr<Outputs> got = runner.Run({{x, data}});
    const absl::StatusOr<Outputs> out =
        masked_runner.Run({{same, data}, {mask, absl::Span<const bool>(hidden.get(), kTokens * kTokens)}});
    ASSERT_TRUE(got.ok() && out.ok());
    EXPECT_THAT((*got)[y].span<const float>(),
                testing::Pointwise(testing::FloatNear(1e-6f), (*out)[wanted].span<const float>()));
  }
}

}  // namespace
}  // namespace weft
