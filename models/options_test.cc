#include "weft/models/options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

const Hyperparameter& Row(const Hyperparameters& table, const std::string& flag) {
  for (const Hyperparameter& row : table) {
    if (row.flag == flag) return row;
  }
  ADD_FAILURE() << "no row " << flag;
  return table.front();
}

TEST(OptionsTest, RowsSetTheFields) {
  GptConfig config;
  const Hyperparameters table = ModelRows(&config);
  const std::pair<const char*, const char*> kTexts[] = {
      {"rotary", "pairs"},      {"norm", "rms_norm"},  {"window", "8,0"},
      {"stride", "3"},          {"score", "dot"},      {"distance-bias", "alibi"},
      {"layer-names", "llama"}, {"positions", "none"}, {"initializer", "xavier-uniform:2"},
      {"ablate", "value,norm"}};
  for (const auto& [flag, text] : kTexts) {
    const absl::Status status = SetFromText(text, Row(table, flag));
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(config.attention.rotary, RotaryLayout::kPairs);
  EXPECT_EQ(config.norm.kind, NormKind::kRmsNorm);
  const std::vector<AttentionPattern> patterns = {{.window = 8, .stride = 3}, {.window = 0, .stride = 3}};
  EXPECT_EQ(config.attention.patterns, patterns);
  EXPECT_EQ(config.layers, 12);
  EXPECT_EQ(config.initializer, XavierUniform(2));
  EXPECT_EQ(config.ablation, (Ablation{.norm = true, .value = true}));
  EXPECT_EQ(Row(table, "window").text(), "8,0");
  EXPECT_EQ(Row(table, "stride").text(), "3");
  config.attention.patterns = {{.window = 1000, .rotary_base = 0.5}, {.rotary_base = 1e6}};
  EXPECT_EQ(Row(table, "window").text(), "1000,0");  // without exponents, as older runs have it
  EXPECT_EQ(Row(table, "layer-rotary-base").text(), "0.5,1000000");
  config.attention.patterns = patterns;
  EXPECT_EQ(Row(table, "dilation").text(), "1");
  EXPECT_EQ(Row(table, "initializer").text(), "xavier-uniform:2");
}

// What a table prints, another table reads to the same values.
TEST(OptionsTest, TextsOfAllRowsAreReadBack) {
  TransformerConfig config = {.attention = {.patterns = {{.window = 4}, {.stride = 2}, {.window = 5, .dilation = 3}}},
                              .initializer = Gaussian(0.25f)};
  config.norm.epsilon = 1e-12;
  config.attention.soft_cap = 30.5;
  const Json json = ToJson(ModelRows(&config));
  TransformerConfig read;
  const absl::Status status = SetFromJson(json, ModelRows(&read));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ToJson(ModelRows(&read)), json);
  EXPECT_EQ(read.attention.patterns, config.attention.patterns);
  EXPECT_EQ(read.initializer, config.initializer);
}

TEST(OptionsTest, EachInitializerIsReadBack) {
  for (const char* text :
       {"default", "normal:0.5", "truncated-normal:0.25", "uniform:0.125", "xavier-normal:1", "xavier-uniform:2",
        "he-normal", "he-uniform", "lecun-normal", "lecun-uniform", "orthogonal:0.5"}) {
    VitConfig config;
    const Hyperparameters table = ModelRows(&config);
    ASSERT_TRUE(SetFromText(text, Row(table, "initializer")).ok()) << text;
    EXPECT_EQ(Row(table, "initializer").text(), text);
  }
}

// Returns the parameters of a block's attention, without biases, in a GPT of width 24 with these options.
int64_t AttentionParameters(const std::vector<std::pair<const char*, const char*>>& texts) {
  GptConfig config = {.vocabulary = 3, .context = 2, .layers = 1, .width = 24};
  const Hyperparameters table = ModelRows(&config);
  EXPECT_TRUE(SetFromText("false", Row(table, "bias")).ok());
  for (const auto& [flag, text] : texts) EXPECT_TRUE(SetFromText(text, Row(table, flag)).ok()) << flag;
  Tape tape;
  Gpt(config).Logits(tape.Input("tokens", {kI32, {1, 2}}, {.below = 3}));
  EXPECT_TRUE(tape.status().ok()) << tape.status();
  int64_t count = 0;
  for (const ParameterSpec& spec : tape.program().parameters) {
    if (absl::StrContains(spec.name, ".attn.")) count += spec.type.shape.elements();
  }
  return count;
}

TEST(OptionsTest, HeadsHaveTheParametersOfTheirFormulas) {
  constexpr int64_t d = 24, h = 4, d_q = 6, d_k = 6, d_v = 6;
  EXPECT_EQ(AttentionParameters({{"heads", "1"}, {"head-merge", "average"}, {"key-width", "6"}}), d * (2 * d_q + d));
  EXPECT_EQ(AttentionParameters({{"heads", "1"}, {"head-merge", "average"}}), d * (2 * d + d));
  EXPECT_EQ(AttentionParameters({{"heads", "4"}, {"head-merge", "average"}}), h * d * (2 * d_q + d));
  EXPECT_EQ(AttentionParameters({{"heads", "4"}}), h * d * (d_q + d_k + 2 * d_v));
  EXPECT_EQ(AttentionParameters({{"heads", "4"}, {"head-merge", "project"}, {"key-width", "5"}, {"value-width", "7"}}),
            h * d * (5 + 5 + 2 * 7));
}

TEST(OptionsTest, NamesWhatIsWrong) {
  BertConfig config;
  const Hyperparameters table = ModelRows(&config);
  const struct {
    const char *flag, *text, *error;
  } kRows[] = {
      {"window", "8,x",
       "window: 'x' is not a whole number of at least 0; wanted one for all layers, or a list such as "
       "8,0 that layers repeat"},
      {"dilation", "0",
       "dilation: '0' is not a whole number of at least 1; wanted one for all layers, or a list such "
       "as 8,1 that layers repeat"},
      {"rotary-layers", "2",
       "rotary-layers: '2' is not a whole number of at least 0 and at most 1; wanted one for all layers, or a list "
       "such as 1,0 that layers repeat"},
      {"initializer", "he-normal:2", "initializer: '2' can't follow he-normal; wanted nothing"},
      {"initializer", "normal:-1", "initializer: '-1' can't follow normal; wanted a number above 0"},
      {"initializer", "xavir-normal",
       "initializer: 'xavir-normal' is not one of default, normal, truncated-normal, uniform, xavier-normal, "
       "xavier-uniform, he-normal, he-uniform, lecun-normal, lecun-uniform, orthogonal, did you mean 'xavier-normal'?"},
      {"ablate", "norms",
       "ablate: 'norms' is not one of residual, norm, feed-forward, value, query-is-key, did you mean 'norm'?; wanted "
       "none, or a list of them separated by commas"},
      {"rotary", "half", "rotary: 'half' is not one of none, halves, pairs"},
  };
  for (const auto& row : kRows) EXPECT_EQ(SetFromText(row.text, Row(table, row.flag)).message(), row.error);
}

}  // namespace
}  // namespace weft
