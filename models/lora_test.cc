#include "weft/models/lora.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/parameters.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/compile/print.h"
#include "weft/graph/run/runner.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr BertConfig kConfig = {
    .vocabulary = 11, .context = 6, .layers = 1, .heads = 2, .width = 4, .feed_forward = 6, .dropout = 0};

struct Model {
  Var tokens, logits;
};

Model Classifier(Tape* tape) {
  const Bert bert(kConfig);
  const Var tokens = tape->Input("tokens", {kI32, {2, 5}}, {.below = 11});
  return {tokens, bert.Classify(bert.Pool(bert.Encode(tokens)), 3)};
}

Model Record(Tape* tape, const LoraOptions& options) {
  const LoraScope lora(tape, options);
  return Classifier(tape);
}

std::vector<std::string> Trained(const Tape& tape) {
  std::vector<std::string> names;
  for (const Var weight : tape.Weights()) names.push_back(tape.ParameterName(weight));
  return names;
}

TEST(LoraTest, TrainsAdaptersAndTheNamedLayersOnly) {
  Tape tape;
  Record(&tape, {.rank = 2, .targets = "*.query, *.value", .also_train = "classifier"});
  ASSERT_TRUE(tape.status().ok()) << tape.status();
  const std::string at = "encoder.layer.0.attention.self.";
  EXPECT_THAT(Trained(tape),
              ElementsAre(at + "query.lora_A.weight", at + "query.lora_B.weight", at + "value.lora_A.weight",
                          at + "value.lora_B.weight", "classifier.weight", "classifier.bias"));
}

TEST(LoraTest, AdaptsQueriesAndValuesOfEachFamilyByDefault) {
  const auto adapted = [](const GptConfig& config) {
    Tape tape;
    const LoraScope lora(&tape, {.rank = 2});
    Gpt(config).Logits(tape.Input("tokens", {kI32, {2, 5}}, {.below = config.vocabulary}));
    EXPECT_TRUE(tape.status().ok()) << tape.status();
    return Trained(tape);
  };
  GptConfig config = {.vocabulary = 11, .context = 6, .layers = 1, .heads = 2, .width = 4};
  EXPECT_THAT(adapted(config), ElementsAre("h.0.attn.c_attn.lora_A.weight", "h.0.attn.c_attn.lora_B.weight"));
  config.names = GptConfig::Names::kLlama;
  const std::string at = "model.layers.0.self_attn.";
  EXPECT_THAT(adapted(config), ElementsAre(at + "q_proj.lora_A.weight", at + "q_proj.lora_B.weight",
                                           at + "v_proj.lora_A.weight", at + "v_proj.lora_B.weight"));
  Tape tape, more;
  Record(&tape, {.rank = 2});
  EXPECT_THAT(Trained(tape), testing::SizeIs(4));
  Record(&more, {.rank = 2, .targets = "queries-and-values, *.key"});
  EXPECT_THAT(Trained(more), testing::SizeIs(6));
}

TEST(LoraTest, RankZeroRecordsTheModelUnchanged) {
  Tape plain, off;
  Classifier(&plain);
  Record(&off, {.targets = "*.query"});
  EXPECT_EQ(PrintText(off.program()), PrintText(plain.program()));
  EXPECT_EQ(Trained(off), Trained(plain));
}

// Returns the logits for some tokens. `b`: the value of all entries of every B.
std::vector<float> Logits(const LoraOptions& options, float b) {
  Tape tape;
  const auto [input, logits] = Record(&tape, options);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}, .mode = kEval});
  EXPECT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 7});
  Runner runner(*graph, &parameters);
  for (const std::string& name : parameters.Names()) {
    const Tensor tensor = *parameters.Find(name);
    if (!absl::EndsWith(name, kLoraB)) continue;
    for (float& value : tensor.span<float>()) value = b;
  }
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const absl::StatusOr<Outputs> outputs = runner.Run({{input, tokens}});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  const absl::Span<const float> values = (*outputs)[logits].span<const float>();
  return {values.begin(), values.end()};
}

TEST(LoraTest, TheModelStartsAsItWas) {
  const LoraOptions lora = {.rank = 3, .targets = "*"};
  EXPECT_EQ(Logits(lora, 0), Logits({}, 0));
  EXPECT_NE(Logits(lora, 0.5f), Logits({}, 0));
}

// As nn.init.kaiming_uniform_(a = √5) of PyTorch: uniform in ±1 / √in.
TEST(LoraTest, AIsKaimingUniform) {
  Tape tape;
  const Var x = tape.Input("x", {kF32, {1, 400}});
  Var y;
  {
    const LoraScope lora(&tape, {.rank = 50, .targets = "layer"});
    y = Linear("layer", x, 4);
  }
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  double sum = 0, squares = 0, greatest = 0;
  const Tensor a = *parameters.Find("layer.lora_A.weight");
  ASSERT_EQ(ToString(a.type), "f32[50,400]");
  for (const float value : a.span<const float>()) {
    sum += value;
    squares += static_cast<double>(value) * value;
    greatest = std::max(greatest, std::abs(static_cast<double>(value)));
  }
  EXPECT_NEAR(sum / 20000, 0, 1e-3);
  EXPECT_NEAR(squares / 20000, 0.05 * 0.05 / 3, 2e-5);
  EXPECT_LE(greatest, 0.05);
  EXPECT_GT(greatest, 0.0499);
}

std::string Error(const LoraOptions& options) {
  Tape tape;
  Record(&tape, options);
  return std::string(tape.status().message());
}

TEST(LoraTest, NamesAPatternWithoutALayer) {
  EXPECT_THAT(Error({.rank = 2, .targets = "*.query,*.c_attn"}),
              HasSubstr("lora: no layer matches '*.c_attn'; the first layers are encoder.layer.0.attention.self.query, "
                        "encoder.layer.0.attention.self.key, "));
  EXPECT_THAT(Error({.rank = 2, .targets = ""}), HasSubstr("lora targets is '', but must name at least one layer"));
  EXPECT_THAT(Error({.rank = -1, .targets = "*"}), HasSubstr("lora rank is -1, but must be at least 0"));
  EXPECT_THAT(Error({.rank = 1, .alpha = 0, .targets = "*"}), HasSubstr("lora alpha is 0, but must be above 0"));
  EXPECT_THAT(Error({.rank = 1, .dropout = 1, .targets = "*"}), HasSubstr("lora dropout is 1, but must be in [0, 1)"));
}

}  // namespace
}  // namespace weft
