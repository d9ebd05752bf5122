#include "weft/models/gpt.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

std::string ErrorOf(const GptConfig& config, TensorType tokens = {kI32, {2, 8}}) {
  Tape tape;
  const int64_t below = tokens.dtype == kI32 ? std::max<int64_t>(config.vocabulary, 1) : 0;
  Gpt(config).Logits(tape.Input("tokens", tokens, {.below = below}));
  return std::string(tape.status().message());
}

TEST(GptTest, HasGpt2sParameterNames) {
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {2, 8}}, {.below = 5});
  const Var logits = Gpt({.vocabulary = 5, .context = 8, .layers = 1, .heads = 2, .width = 4}).Logits(tokens);
  ASSERT_TRUE(tape.status().ok()) << tape.status();
  EXPECT_EQ(ToString(logits.type()), "f32[2,8,5]");
  std::vector<std::string> names;
  for (const ParameterSpec& spec : tape.program().parameters)
    names.push_back(spec.name + " " + ToString(spec.type.shape));
  EXPECT_THAT(names,
              ElementsAre("wte.weight [5,4]", "wpe.weight [8,4]", "h.0.ln_1.weight [4]", "h.0.ln_1.bias [4]",
                          "h.0.attn.c_attn.weight [12,4]", "h.0.attn.c_attn.bias [12]", "h.0.attn.c_proj.weight [4,4]",
                          "h.0.attn.c_proj.bias [4]", "h.0.ln_2.weight [4]", "h.0.ln_2.bias [4]",
                          "h.0.mlp.c_fc.weight [16,4]", "h.0.mlp.c_fc.bias [16]", "h.0.mlp.c_proj.weight [4,16]",
                          "h.0.mlp.c_proj.bias [4]", "ln_f.weight [4]", "ln_f.bias [4]"));
}

TEST(GptTest, ZeroOutputsMakeBlocksTheIdentity) {
  const auto outputs_of = [](bool zero_output, int64_t layers) {
    Tape tape;
    const Var tokens = tape.Input("tokens", {kI32, {1, 4}}, {.below = 5});
    const Gpt gpt(
        {.vocabulary = 5, .context = 4, .layers = layers, .heads = 2, .width = 8, .zero_output = zero_output});
    const Var logits = gpt.Logits(tokens);
    const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}, .mode = kEval});
    EXPECT_TRUE(graph.ok()) << graph.status();
    Parameters parameters;
    Runner runner(*graph, &parameters);
    const absl::StatusOr<Outputs> out = runner.Run({{tokens, std::vector<int32_t>{1, 3, 0, 4}}});
    EXPECT_TRUE(out.ok()) << out.status();
    const absl::Span<const float> span = (*out)[logits].span<const float>();
    return std::vector<float>(span.begin(), span.end());
  };
  EXPECT_EQ(outputs_of(true, 1), outputs_of(true, 3));
  EXPECT_NE(outputs_of(false, 1), outputs_of(false, 3));
}

// Returns the logits [1, T, 7] of a GPT with rotary positions, which depend on distances only.
std::vector<float> LogitsOf(const std::vector<int32_t>& tokens, const std::vector<int32_t>& documents) {
  Tape tape;
  const TensorType row = {kI32, {1, static_cast<int64_t>(tokens.size())}};
  const Var input = tape.Input("tokens", row, {.below = 7});
  const Var numbers = documents.empty() ? Var{} : tape.Input("documents", row);
  const Gpt gpt({.vocabulary = 7,
                 .context = 16,
                 .layers = 2,
                 .heads = 2,
                 .width = 8,
                 .attention = {.rotary = RotaryLayout::kHalves}});
  const Var logits = gpt.Logits(input, nullptr, numbers);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}});
  EXPECT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 1});
  Runner runner(*graph, &parameters);
  for (const std::string& name : parameters.Names(Parameters::kWeights)) {  // larger than the small initial values
    if (name.find("ln_") != std::string::npos) continue;
    for (float& weight : parameters.Find(name)->span<float>()) weight *= 30;
  }
  std::vector<FeedPair> feeds = {{input, tokens}};
  if (!documents.empty()) feeds.push_back({numbers, documents});
  const absl::StatusOr<Outputs> out = runner.Run(feeds);
  EXPECT_TRUE(out.ok()) << out.status();
  const absl::Span<const float> values = (*out)[logits].span<float>();
  return {values.begin(), values.end()};
}

TEST(GptTest, ATokenAttendsToItsOwnDocumentOnly) {
  const std::vector<int32_t> first = {1, 5, 2, 0, 6}, second = {3, 3, 4}, third = {6, 2};
  std::vector<int32_t> all = first;
  std::vector<float> expected = LogitsOf(first, {});
  for (const std::vector<int32_t>& each : {second, third}) {
    all.insert(all.end(), each.begin(), each.end());
    const std::vector<float> alone = LogitsOf(each, {});
    expected.insert(expected.end(), alone.begin(), alone.end());
  }
  EXPECT_THAT(LogitsOf(all, {0, 0, 0, 0, 0, 1, 1, 1, 2, 2}), Pointwise(FloatNear(1e-4f), expected));
  EXPECT_THAT(LogitsOf(all, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), Not(Pointwise(FloatNear(0.1f), expected)));
  EXPECT_EQ(LogitsOf(all, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), LogitsOf(all, {}));
}

TEST(GptTest, DocumentsHaveTheShapeOfTokens) {
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {2, 8}}, {.below = 5});
  Gpt({.vocabulary = 5}).Logits(tokens, nullptr, tape.Input("documents", {kI32, {2, 7}}));
  EXPECT_THAT(std::string(tape.status().message()), HasSubstr("documents must be i32[B,T] as tokens"));
}

TEST(GptTest, SaysWhatDoesNotFit) {
  EXPECT_THAT(ErrorOf({.heads = 3, .width = 100}), HasSubstr("width 100 is not a multiple of heads 3"));
  EXPECT_THAT(ErrorOf({.layers = 0}), HasSubstr("layers is 0, but must be at least 1"));
  EXPECT_THAT(ErrorOf({.dropout = 1}), HasSubstr("dropout is 1, but must be in [0, 1)"));
  EXPECT_THAT(ErrorOf({.layers = 1 << 30}), HasSubstr("layers is 1073741824, but may be 4096 at most"));
  EXPECT_THAT(ErrorOf({.vocabulary = int64_t{1} << 40}), HasSubstr("vocabulary is 1099511627776, but may be"));
  EXPECT_THAT(ErrorOf({.norm = {.epsilon = 0}}), HasSubstr("norm's epsilon is 0, but must be above 0"));
  EXPECT_THAT(ErrorOf({.norm = {.epsilon = std::nan("")}}), HasSubstr("norm's epsilon is nan, but must be above 0"));
  EXPECT_THAT(ErrorOf({.attention = {.rotary = RotaryLayout::kHalves, .rotary_base = -1}}),
              HasSubstr("rotary_base is -1, but must"));
  EXPECT_THAT(ErrorOf({.context = 1 << 20, .heads = 1, .width = 1024, .attention = {.rotary = RotaryLayout::kHalves}}),
              HasSubstr("context 1048576 times a head's width 1024 is over 268435456"));
  EXPECT_THAT(ErrorOf({.attention_dropout = 1.5}), HasSubstr("attention_dropout is 1.5, but must be in [0, 1)"));
  EXPECT_THAT(ErrorOf({.dtype = kBF16}), HasSubstr("dtype is bf16, but must be f32 or f64"));
  EXPECT_THAT(ErrorOf({.context = 4}), HasSubstr("T at most the context 4; inputs i32[2,8]; at gpt"));
  EXPECT_THAT(ErrorOf({}, {kF32, {2, 8}}), HasSubstr("tokens must be i32[B,T]"));
  EXPECT_THAT(ErrorOf({}, {kI32, {}}), HasSubstr("tokens must be i32[B,T]"));
}

}  // namespace
}  // namespace weft
