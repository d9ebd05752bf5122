// Ablations leave out weights and change results as they say.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/attention.h"
#include "weft/models/block.h"
#include "weft/models/gpt.h"
#include "weft/models/layers.h"
#include "weft/models/options.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr Ablation kNoResidual = {.residual = true}, kNoNorm = {.norm = true}, kNoFeedForward = {.feed_forward = true},
                   kNoValue = {.value = true}, kQueryIsKey = {.query_is_key = true};
constexpr Ablation kAll = {true, true, true, true, true};

TEST(AblationTest, ATextNamesTheParts) {
  EXPECT_EQ(ToText({}), "none");
  EXPECT_EQ(ToText(kAll), "residual,norm,feed-forward,value,query-is-key");
  for (const Ablation& ablation : {Ablation(), kNoResidual, kNoNorm, kNoFeedForward, kNoValue, kQueryIsKey, kAll}) {
    EXPECT_EQ(AblationFromText(ToText(ablation)).value(), ablation);
  }
  EXPECT_EQ(AblationFromText("query_is_key, norm").value(), (Ablation{.norm = true, .query_is_key = true}));
  EXPECT_EQ(AblationFromText("norm,valeu").status().message(),
            "'valeu' is not one of residual, norm, feed-forward, value, query-is-key, did you mean 'value'?; wanted "
            "none, or a list of them separated by commas");
  EXPECT_FALSE(AblationFromText("").ok());
}

GptConfig SmallGpt(const Ablation& ablation) {
  return {.vocabulary = 7, .context = 5, .layers = 2, .heads = 2, .width = 8, .feed_forward = 12, .ablation = ablation};
}

using Names = std::vector<std::string>;

Names WeightsOf(const Tape& tape) {
  EXPECT_TRUE(tape.status().ok()) << tape.status();
  Names names;
  for (const ParameterSpec& spec : tape.program().parameters) names.push_back(spec.name);
  return names;
}

Names GptWeights(const Ablation& ablation) {
  Tape tape;
  Gpt(SmallGpt(ablation)).Logits(tape.Input("tokens", {kI32, {1, 5}}, {.below = 7}));
  return WeightsOf(tape);
}

TEST(AblationTest, LeavesOutTheWeightsOfAPart) {
  EXPECT_EQ(GptWeights(kNoResidual), GptWeights({}));
  EXPECT_THAT(GptWeights({}), SizeIs(28));
  EXPECT_THAT(GptWeights(kNoNorm), SizeIs(28 - 5 * 2));
  EXPECT_THAT(GptWeights(kNoFeedForward), SizeIs(28 - 2 * 6));
  EXPECT_THAT(GptWeights(kAll),
              ElementsAre("wte.weight", "wpe.weight", "h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias",
                          "h.0.attn.c_proj.weight", "h.0.attn.c_proj.bias", "h.1.attn.c_attn.weight",
                          "h.1.attn.c_attn.bias", "h.1.attn.c_proj.weight", "h.1.attn.c_proj.bias"));
}

using Numbers = std::vector<double>;
using Weights = std::map<std::string, Numbers>;

Numbers Waves(int64_t n, double shift = 0) {
  Numbers values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.7 * static_cast<double>(i) + shift);
  return values;
}
Numbers WavesOf(const std::string& name, int64_t n) {
  double shift = 0;
  for (const char c : name) shift = 1.3 * shift + c;
  return Waves(n, shift);
}

// Returns what `record` computes of x [2, 3, 8] and memory [2, 4, 8]. Weights are `own` or, by default, WavesOf.
Numbers ValuesOf(absl::FunctionRef<Var(Var x, Var memory)> record, const Weights& own = {}) {
  Tape tape;
  const Var x = tape.Input("x", {kF64, {2, 3, 8}}), memory = tape.Input("memory", {kF64, {2, 4, 8}});
  const Var y = record(x, memory);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}});
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  Parameters parameters;
  Runner runner(*graph, &parameters);
  for (const std::string& name : parameters.Names(Parameters::kWeights)) {
    const absl::Span<double> to = parameters.Find(name)->span<double>();
    const auto found = own.find(name);
    const Numbers from = found != own.end() ? found->second : WavesOf(name, static_cast<int64_t>(to.size()));
    EXPECT_EQ(from.size(), to.size()) << name;
    std::copy(from.begin(), from.end(), to.begin());
  }
  const Numbers a = Waves(48), b = Waves(64, 1);
  const absl::StatusOr<Outputs> out = runner.Run({{x, a}, {memory, b}});
  EXPECT_TRUE(out.ok()) << out.status();
  if (!out.ok()) return {};
  const absl::Span<const double> values = (*out)[y].span<const double>();
  return {values.begin(), values.end()};
}

BlockOptions Decoder(const Ablation& ablation, const char* packed = nullptr) {
  return {.attention = {.heads = 2, .causal = true, .ablation = ablation, .packed = packed},
          .cross_attention = AttentionOptions{.heads = 2, .ablation = ablation, .packed = nullptr},
          .feed_forward = {.width = 12}};
}
Numbers BlockValues(const BlockOptions& options, const Weights& own = {}) {
  return ValuesOf([&](Var x, Var memory) { return Block("b", x, options, {.cross = {.memory = memory}}); }, own);
}

void ExpectNear(const Numbers& a, const Numbers& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << i;
}

TEST(AblationTest, WithoutValuesIsALayerOfValuesThatChangesNothing) {
  Numbers unit(64);
  for (size_t i = 0; i < 8; ++i) unit[9 * i] = 1;
  Weights own;
  for (const char* const attention : {"b.attn.v_proj", "b.crossattention.v_proj"}) {
    own[absl::StrCat(attention, ".weight")] = unit;
    own[absl::StrCat(attention, ".bias")] = Numbers(8);
  }
  ExpectNear(BlockValues(Decoder(kNoValue)), BlockValues(Decoder({}), own));
}

TEST(AblationTest, QueriesThatAreKeysHaveEqualLayers) {
  Weights own;
  for (const char* const attention : {"b.attn", "b.crossattention"}) {
    for (const auto& [part, size] : {std::pair{"weight", 64}, {"bias", 8}}) {
      const std::string query = absl::StrCat(attention, ".q_proj.", part);
      own[absl::StrCat(attention, ".k_proj.", part)] = WavesOf(query, size);
    }
  }
  ExpectNear(BlockValues(Decoder(kQueryIsKey)), BlockValues(Decoder({}), own));
}

TEST(AblationTest, APackedLayerHasFewerRows) {
  constexpr int64_t kWidth = 8;
  const auto rows = [](const char* part, int64_t wide, const std::vector<int64_t>& thirds) {
    const Numbers all = WavesOf(absl::StrCat("b.attn.c_attn.", part), 3 * kWidth * wide);
    Numbers chosen;
    for (const int64_t third : thirds) {
      const auto begin = all.begin() + third * kWidth * wide;
      chosen.insert(chosen.end(), begin, begin + kWidth * wide);
    }
    return chosen;
  };
  const auto weights = [&](const std::vector<int64_t>& thirds) {
    return Weights{{"b.attn.c_attn.weight", rows("weight", kWidth, thirds)},
                   {"b.attn.c_attn.bias", rows("bias", 1, thirds)}};
  };
  const auto values = [](const Ablation& ablation, const Weights& own) {
    BlockOptions options = Decoder(ablation, "c_attn");
    options.cross_attention.reset();
    return BlockValues(options, own);
  };
  ExpectNear(values(kQueryIsKey, weights({0, 2})), values({}, weights({0, 0, 2})));
  Weights unit = weights({0, 1, 2});
  for (size_t i = 2 * kWidth; i < 3 * kWidth; ++i) {
    unit["b.attn.c_attn.bias"][i] = 0;
    for (size_t j = 0; j < kWidth; ++j) unit["b.attn.c_attn.weight"][kWidth * i + j] = i - 2 * kWidth == j ? 1 : 0;
  }
  ExpectNear(values(kNoValue, weights({0, 1})), values({}, unit));
}

TEST(AblationTest, WithoutAFeedForwardLayerItAddsNothing) {
  const Weights zero = {{"b.mlp.c_proj.weight", Numbers(8 * 12)}, {"b.mlp.c_proj.bias", Numbers(8)}};
  ExpectNear(BlockValues(Decoder(kNoFeedForward)), BlockValues(Decoder({}), zero));
}

TEST(AblationTest, WithoutResidualsOrNormsLayersFollowEachOther) {
  const auto by_hand = [](bool residual, bool pre, bool post) {
    return ValuesOf([&](Var x, Var memory) {
      const Scope scope(x.tape, "b");
      const BlockOptions o = Decoder({});
      const auto norm = [](const char* name, Var h, bool on) { return on ? LayerNorm(name, h) : h; };
      const auto sum = [&](Var h, Var y) { return residual ? h + y : y; };
      x = norm("ln_1", sum(x, MultiHeadAttention("attn", norm("ln_1", x, pre), o.attention)), post);
      x = norm("ln_cross_attn",
               sum(x, MultiHeadAttention("crossattention", norm("ln_cross_attn", x, pre), *o.cross_attention,
                                         {.memory = memory})),
               post);
      return norm("ln_2", sum(x, FeedForward("mlp", norm("ln_2", x, pre), o.feed_forward)), post);
    });
  };
  for (const bool pre_norm : {true, false}) {
    const auto values = [&](const Ablation& ablation) {
      BlockOptions options = Decoder(ablation);
      options.pre_norm = pre_norm;
      return BlockValues(options);
    };
    EXPECT_EQ(values({}), by_hand(true, pre_norm, !pre_norm));
    EXPECT_EQ(values(kNoResidual), by_hand(false, pre_norm, !pre_norm));
    EXPECT_EQ(values(kNoNorm), by_hand(true, false, false));
    EXPECT_EQ(values({.residual = true, .norm = true}), by_hand(false, false, false));
  }
}

TEST(AblationTest, SaysWhatDoesNotFit) {
  const auto error = [](GptConfig config) { return std::string(Validate(config).message()); };
  GptConfig config = SmallGpt(kQueryIsKey);
  config.attention.key_value_heads = 1;
  EXPECT_EQ(error(config), "a layer for both queries and keys needs key_value_heads 2 and query_width 4, not 1 and 0");
  config = SmallGpt(kNoValue);
  config.attention.value_width = 3;
  EXPECT_EQ(error(config), "without a layer of values, width 8 must be key_value_heads 2 times value_width 3");
  config.attention = {.merge = HeadMerge::kAverage};
  EXPECT_EQ(error(config), "without a layer of values, the mean of heads needs key_value_heads 1, not 2");
  config.attention.key_value_heads = 1;
  EXPECT_EQ(error(config), "");

  Tape tape;
  const Var x = tape.Input("x", {kF32, {1, 2, 8}}), memory = tape.Input("memory", {kF32, {1, 2, 6}});
  MultiHeadAttention("a", x, {.heads = 2, .ablation = kNoValue}, {.memory = memory});
  EXPECT_THAT(tape.status().message(), HasSubstr("with an ablation, the memory must be as wide as x"));
}

}  // namespace
}  // namespace weft
