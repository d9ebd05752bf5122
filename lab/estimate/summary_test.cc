// Expected numbers of parameters are those that the Python package transformers counts for the published
// configurations: GPT2LMHeadModel, BertModel(add_pooling_layer=False), ViTForImageClassification.
#include "weft/lab/estimate/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace weft {
namespace {

using testing::HasSubstr;

ModelSummary Of(const PublishedModel& model) {
  absl::StatusOr<ModelSummary> summary = Summarize(model);
  EXPECT_TRUE(summary.ok()) << summary.status();
  return summary.ok() ? *std::move(summary) : ModelSummary{};
}

const SummaryPart* Find(const ModelSummary& summary, const std::string& scope) {
  for (const SummaryGroup& group : summary.groups) {
    for (const SummaryPart& part : group.parts) {
      if (part.scope == scope) return &part;
    }
  }
  return nullptr;
}

TEST(SummaryTest, Gpt2) {
  const ModelSummary summary = Of(PublishedGpt{});  // the default is GPT-2's smallest model
  EXPECT_EQ(summary.kind, "a GPT");
  EXPECT_EQ(summary.parameters, 124'439'808);
  ASSERT_EQ(summary.groups.size(), 4u);  // wte, wpe, blocks, ln_f
  EXPECT_EQ(summary.groups[2].first, "h.0");
  EXPECT_EQ(summary.groups[2].last, "h.11");
  EXPECT_EQ(summary.groups[2].copies, 12);
  EXPECT_EQ(summary.groups[2].parameters(), 7'087'872);
  EXPECT_EQ(Find(summary, "wpe")->parameters, 1024 * 768);
  EXPECT_EQ(Find(summary, "mlp")->parameters, 2 * 768 * 3072 + 768 + 3072);
  // 2 for each weight of a product (12·C² in a block; the head), and 4·T·C for the scores and the weighted sum.
  const double flops = 2 * (12.0 * 12 * 768 * 768 + 50257.0 * 768) + 12 * 4.0 * 1024 * 768;
  EXPECT_DOUBLE_EQ(summary.forward_flops, flops);
  EXPECT_DOUBLE_EQ(summary.training_flops(), 3 * flops);
  EXPECT_EQ(summary.cache_bytes, 2 * 12 * 768 * 4);
}

TEST(SummaryTest, APartHasTheShapesOfItsParameters) {
  PublishedGpt model;
  model.config = {.vocabulary = 73, .context = 64, .layers = 4, .heads = 4, .width = 128};
  const ModelSummary summary = Of(model);
  const SummaryPart* attention = Find(summary, "attn");
  ASSERT_NE(attention, nullptr);
  EXPECT_EQ(attention->parameters, 4 * 128 * 128 + 4 * 128);
  EXPECT_THAT(attention->shapes, testing::ElementsAre("c_attn.weight [384,128]", "c_attn.bias [384]",
                                                      "c_proj.weight [128,128]", "c_proj.bias [128]"));
}

TEST(SummaryTest, OtherFamilies) {
  EXPECT_EQ(Of(PublishedBert{}).parameters, 108'891'648);
  EXPECT_EQ(Of(PublishedBert{}).cache_bytes, 0);
  EXPECT_EQ(Of(PublishedVit{}).parameters, 86'567'656);
  // Vaswani et al., 2017, base: 6 blocks a side with 4·C² weights in each attention and 2·C·F in the rest.
  const ModelSummary transformer = Of(PublishedTransformer{});
  EXPECT_EQ(Find(transformer, "encoder_attn")->parameters, 4 * 512 * 512 + 4 * 512);
  EXPECT_EQ(transformer.cache_bytes, 2 * 6 * 512 * 4);
  PublishedGpt llama;  // 8 of 32 heads have keys and values, as in Mistral 7B
  llama.config = {.vocabulary = 32000,
                  .context = 4096,
                  .layers = 32,
                  .heads = 32,
                  .width = 4096,
                  .feed_forward = 14336,
                  .activation = Activation::kSilu,
                  .tied_head = false,
                  .bias = false,
                  .norm = {.kind = NormKind::kRmsNorm},
                  .gated = true,
                  .names = GptConfig::Names::kLlama};
  llama.config.attention.key_value_heads = 8;
  llama.config.attention.rotary = RotaryLayout::kHalves;
  const ModelSummary mistral = Of(llama);
  EXPECT_EQ(mistral.parameters, 7'241'732'096);  // as the model's page tells
  EXPECT_EQ(Find(mistral, "self_attn")->parameters, 2 * 4096 * 4096 + 2 * 4096 * 1024);
  EXPECT_EQ(mistral.cache_bytes, 2 * 32 * 1024 * 4);
}

TEST(SummaryTest, BlocksThatDifferAreNotFolded) {
  const auto spec = [](const std::string& name, const Shape& shape) { return ParameterSpec{name, {kF32, shape}}; };
  const std::vector<SummaryGroup> groups =
      GroupParameters({spec("h.0.a.w", {4, 8}), spec("h.1.a.w", {4, 8}), spec("h.2.a.w", {8, 8}), spec("out.w", {5})});
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].copies, 2);
  EXPECT_EQ(groups[0].parameters(), 32);
  EXPECT_EQ(groups[1].parameters(), 64);
  EXPECT_EQ(groups[2].parameters(), 5);
}

TEST(SummaryTest, TextHas80ColumnsAndJsonTheSameFigures) {
  const ModelSummary summary = Of(PublishedTransformer{});
  const TrainedParameters trained = {.trained = summary.parameters - 1000, .frozen = 1000};
  const std::string text = PrintSummary(summary, trained, nullptr);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }), 80) << line;
  }
  EXPECT_THAT(text, HasSubstr("encoder.layers.0 .. encoder.layers.5, 6 blocks"));
  EXPECT_THAT(text, HasSubstr("1,000 frozen"));
  const nlohmann::json json = nlohmann::json::parse(PrintSummaryJson(summary, trained, nullptr));
  EXPECT_EQ(json["parameters"], summary.parameters);
  EXPECT_EQ(json["frozen"], 1000);
  EXPECT_EQ(json["optimizer_bytes"], 8.0 * static_cast<double>(trained.trained));
}

// Running means and variances are no weights that an optimizer changes.
TEST(SummaryTest, StatisticsAreCountedApart) {
  PublishedTransformer published;
  published.config.norm.kind = NormKind::kBatchNorm;
  const ModelSummary summary = Of(published);
  EXPECT_GT(summary.statistics, 0);
  const TrainedParameters trained = {.trained = summary.parameters - summary.statistics,
                                     .statistics = summary.statistics};
  EXPECT_THAT(PrintSummary(summary, trained, nullptr), HasSubstr(" 0 frozen, "));
  EXPECT_THAT(PrintSummary(summary, trained, nullptr), HasSubstr(" statistics\n"));
  const nlohmann::json json = nlohmann::json::parse(PrintSummaryJson(summary, trained, nullptr));
  EXPECT_EQ(json["parameters"], summary.parameters);
  EXPECT_EQ(json["statistics"], summary.statistics);
  EXPECT_EQ(json["optimizer_bytes"], 8.0 * static_cast<double>(trained.trained));
  EXPECT_EQ(Of(PublishedTransformer{}).statistics, 0);
}

}  // namespace
}  // namespace weft
