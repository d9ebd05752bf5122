#include "weft/models/gpt.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

using ::testing::Each;
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

// Returns the logits of a GPT for one text, after `change` has changed its weights.
std::vector<float> LogitsWith(const GptConfig& config, absl::FunctionRef<void(Parameters*)> change) {
  Tape tape;
  const std::vector<int32_t> text = {1, 3, 0, 4};
  const Var tokens = tape.Input("tokens", {kI32, {1, 4}}, {.below = config.vocabulary});
  const Var logits = Gpt(config).Logits(tokens);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}, .mode = kEval});
  EXPECT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  change(&parameters);
  const absl::StatusOr<Outputs> out = runner.Run({{tokens, text}});
  EXPECT_TRUE(out.ok()) << out.status();
  const absl::Span<const float> span = (*out)[logits].span<float>();
  return {span.begin(), span.end()};
}

// Sets elements `begin`, `begin` + 1 and so on of a weight to `values`.
void Set(Parameters* parameters, const std::string& name, size_t begin, const std::vector<float>& values) {
  std::copy(values.begin(), values.end(), &parameters->Find(name)->span<float>()[begin]);
}

TEST(GptTest, ZeroOutputsMakeBlocksTheIdentity) {
  const auto logits_of = [](bool zero_output, int64_t layers) {
    return LogitsWith(
        {.vocabulary = 5, .context = 4, .layers = layers, .heads = 2, .width = 8, .zero_output = zero_output},
        [](Parameters*) {});
  };
  EXPECT_EQ(logits_of(true, 1), logits_of(true, 3));
  EXPECT_NE(logits_of(false, 1), logits_of(false, 3));
}

// The first token sees itself only. Its value embedding acts there as a bias of the values.
TEST(GptTest, ValueEmbeddingsAreAddedToTheValues) {
  constexpr size_t kWidth = 8, kFirstToken = 1;
  const std::vector<float> first = {3, -1, 4, 1, -5, 9, 2, -6}, second = {2, 7, -1, 8, 2, -8, 1, 8};
  GptConfig config = {.vocabulary = 5, .context = 4, .layers = 2, .heads = 2, .width = kWidth};
  const auto first_logits = [&](absl::FunctionRef<void(Parameters*)> change) {
    std::vector<float> logits = LogitsWith(config, change);
    logits.resize(5);
    return logits;
  };
  const std::vector<float> plain = first_logits([](Parameters*) {});
  const std::vector<float> biased = first_logits([&](Parameters* parameters) {
    Set(parameters, "h.0.attn.c_attn.bias", 2 * kWidth, first);
    Set(parameters, "h.1.attn.c_attn.bias", 2 * kWidth, second);
  });
  config.value_embeddings = true;
  EXPECT_THAT(first_logits([&](Parameters* parameters) {
                Set(parameters, "h.0.value_embedding.weight", kFirstToken * kWidth, first);
                Set(parameters, "h.1.value_embedding.weight", kFirstToken * kWidth, second);
              }),
              Pointwise(FloatNear(1e-5f), biased));
  EXPECT_THAT(biased, Not(Pointwise(FloatNear(1e-2f), plain)));
}

// The layers of all blocks give zeros, except that block 1 adds its bias d to the embedding e. Block 2 gets (1 + w)(e +
// d), and block 3 gets that plus v·e. The norm before the head leaves the sign of a factor only.
TEST(GptTest, SkipConnectionsAddTheFirstHalfToTheSecond) {
  GptConfig config = {.vocabulary = 5, .context = 4, .layers = 4, .heads = 2, .width = 8, .zero_output = true};
  config.norm.epsilon = 1e-20;
  const std::vector<float> plain = LogitsWith(config, [](Parameters*) {});
  config.skip_connections = true;
  EXPECT_THAT(LogitsWith(config, [](Parameters*) {}), Pointwise(FloatNear(1e-5f), plain));
  const auto with = [&](float w, float v) {
    return LogitsWith(config, [=](Parameters* parameters) {
      Set(parameters, "h.1.mlp.c_proj.bias", 0, {3, -1, 4, 1, -5, 9, 2, -6});
      Set(parameters, "h.2.skip.weight", 0, {w});
      Set(parameters, "h.3.skip.weight", 0, {v});
    });
  };
  std::vector<float> negative = plain;
  for (float& logit : negative) logit = -logit;
  EXPECT_THAT(with(-1, 2), Pointwise(FloatNear(1e-5f), plain));
  EXPECT_THAT(with(-1, -2), Pointwise(FloatNear(1e-5f), negative));
  EXPECT_THAT(with(-1, 0), Each(0));
  EXPECT_THAT(with(0, 2), Not(Pointwise(FloatNear(1e-2f), plain)));

  config.layers = 5;  // the last block has no partner
  LogitsWith(config, [](Parameters* parameters) {
    EXPECT_TRUE(parameters->Find("h.3.skip.weight").ok());
    EXPECT_FALSE(parameters->Find("h.4.skip.weight").ok());
  });
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
  EXPECT_THAT(ErrorOf({.layers = 1, .skip_connections = true}), HasSubstr("skip_connections need at least 2 layers"));
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
