#include "weft/formats/config_json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// `json` with a key set, after reading it as text.
Json With(const char* json, const char* key, const char* value) {
  Json parsed = Json::parse(json);
  parsed[key] = Json::parse(value);
  return parsed;
}

constexpr char kGpt2[] = R"({"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 8, "vocab_size": 11})";
constexpr char kLlama[] = R"({"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4,
    "hidden_size": 16, "intermediate_size": 24, "vocab_size": 11})";
constexpr char kMistral[] = R"({"model_type": "mistral", "num_hidden_layers": 2, "num_attention_heads": 8,
    "hidden_size": 16, "vocab_size": 11})";
constexpr char kBert[] = R"({"model_type": "bert", "num_hidden_layers": 2, "num_attention_heads": 2,
    "hidden_size": 8, "vocab_size": 11})";

TEST(ConfigJsonTest, MissingKeysHaveTheDefaultsOfHuggingFace) {
  const GptConfig gpt2 = *ConfigFromJson<GptConfig>(Json::parse("{}"));
  EXPECT_EQ(gpt2.vocabulary, 50257);
  EXPECT_EQ(gpt2.dropout, 0.1);
  EXPECT_EQ(gpt2.attention_dropout, std::nullopt);
  EXPECT_EQ(gpt2.activation, Activation::kGeluTanh);
  EXPECT_TRUE(gpt2.tied_head);
  EXPECT_EQ(ConfigFromJson<GptConfig>(With(kGpt2, "resid_pdrop", "0"))->attention_dropout, 0.1);
  const GptConfig llama = *ConfigFromJson<GptConfig>(Json::parse(R"({"model_type": "llama"})"));
  EXPECT_EQ(llama.feed_forward, 11008);
  EXPECT_EQ(llama.norm.epsilon, 1e-6);
  EXPECT_FALSE(llama.tied_head);
  EXPECT_EQ(ConfigFromJson<GptConfig>(Json::parse(kMistral))->attention.key_value_heads, 8);
  EXPECT_EQ(ConfigFromJson<GptConfig>(Json::parse(kMistral))->attention.patterns.at(0).window, 4096);
  EXPECT_TRUE(ConfigFromJson<GptConfig>(With(kMistral, "sliding_window", "null"))->attention.patterns.empty());
  EXPECT_EQ(ConfigFromJson<BertConfig>(Json::parse(kBert))->feed_forward, 3072);
}

TEST(ConfigJsonTest, EveryKeyIsUsedHarmlessOrRefused) {
  const struct {
    const char *config, *key, *value;
    const char* error;  // null: it is read
  } rows[] = {
      {kGpt2, "n_ctx", "512", nullptr},
      {kGpt2, "scale_attn_weights", "true", nullptr},
      {kGpt2, "scale_attn_weights", "false", "scale_attn_weights is false, which is not supported; wanted true"},
      {kGpt2, "scale_attn_by_inverse_layer_idx", "true", "scale_attn_by_inverse_layer_idx is true"},
      {kGpt2, "reorder_and_upcast_attn", "true", nullptr},
      {kGpt2, "activation_function", "\"tanh\"",
       "activation_function is \"tanh\", which is not supported; wanted gelu"},
      {kGpt2, "n_layer", "2.5", "n_layer is 2.5, which is not supported; wanted a whole number"},
      {kGpt2, "n_layer", "\"2\"", "n_layer is \"2\""},
      {kGpt2, "n_layer", "100000000", "layers is 100000000, but may be 4096 at most"},
      {kGpt2, "n_layer", "18446744073709551615",
       "n_layer is 18446744073709551615, which is not supported; wanted a whole number"},
      {kGpt2, "layer_norm_epsilon", "0", "epsilon is 0, but must be above 0"},
      {kGpt2, "attn_pdrop", "1.5", "attention_dropout is 1.5, but must be in [0, 1)"},
      {kGpt2, "summary_type", "\"cls_index\"", nullptr},
      {kGpt2, "task_specific_params", R"({"text-generation": {"do_sample": true}})", nullptr},
      {kGpt2, "add_cross_attention", "true", "add_cross_attention is true"},
      {kGpt2, "pruned_heads", R"({"1": [0]})", "pruned_heads is {\"1\":[0]}"},
      {kGpt2, "quantization_config", R"({"bits": 4})", "'quantization_config' is {\"bits\":4}, but no key"},
      {kGpt2, "of_the_future", "false", nullptr},
      {kGpt2, "of_the_future", "7", "'of_the_future' is 7, but no key that is known here: it might change the model"},
      {kGpt2, "model_type", "\"gpt_neo\"", "model_type is \"gpt_neo\", which is not supported; wanted gpt2"},
      {kLlama, "rope_scaling", "null", nullptr},
      {kLlama, "rope_scaling", R"({"type": "linear", "factor": 2})", nullptr},
      {kLlama, "rope_scaling", R"({"type": "linear"})", "rope_scaling is {\"type\":\"linear\"}"},
      {kLlama, "rope_scaling", R"({"type": "dynamic", "factor": 2})", "wanted type is \"dynamic\""},
      {kLlama, "rope_scaling", R"({"type": "linear", "factor": 2, "more": 1})", "'more' is 1"},
      {kLlama, "rope_scaling", R"({"type": "yarn", "factor": 2, "truncate": false})", "truncate is false"},
      {kLlama, "rope_parameters", R"({"rope_type": "default", "rope_theta": 500000})", nullptr},
      {kLlama, "rope_parameters", R"({"rope_type": "llama3", "rope_theta": 5e5})", "rope_parameters is {\"rope_type\""},
      {kLlama, "rope_parameters", R"({"rope_theta": -1})", "rotary_base is -1, but must be above 0"},
      {kLlama, "rope_theta", "0", "rotary_base is 0, but must be above 0"},
      {kLlama, "head_dim", "4", nullptr},
      {kLlama, "head_dim", "8", nullptr},
      {kLlama, "head_dim", "5", "a head's width is 5"},
      {kLlama, "attention_bias", "true", nullptr},
      {kLlama, "mlp_bias", "true", nullptr},
      {kLlama, "pretraining_tp", "2", nullptr},
      {kLlama, "sliding_window", "7", "'sliding_window' is 7"},
      {kLlama, "num_key_value_heads", "3", "heads 4 is not a multiple of key_value_heads 3"},
      {kBert, "position_embedding_type", "\"relative_key\"", nullptr},
      {kBert, "is_decoder", "true", "is_decoder is true"},
      {kBert, "tie_word_embeddings", "false", "tie_word_embeddings is false, which is not supported; wanted true"},
      {kBert, "pooler_type", "\"first_token_transform\"", nullptr},
      {kBert, "hidden_act", "\"mish\"", "hidden_act is \"mish\""},
      {kBert, "classifier_dropout", "0.3", nullptr},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(row.key) + " " + row.value);
    const Json json = With(row.config, row.key, row.value);
    const absl::Status status =
        row.config == kBert ? ConfigFromJson<BertConfig>(json).status() : ConfigFromJson<GptConfig>(json).status();
    if (row.error == nullptr) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr(row.error));
    }
  }
  EXPECT_EQ(
      ConfigFromJson<GptConfig>(With(kLlama, "rope_parameters", R"({"rope_theta": 500000.0})"))->attention.rotary_base,
      500000);
  EXPECT_EQ(ConfigFromJson<GptConfig>(With(kGpt2, "attn_pdrop", "0.25"))->attention_dropout, 0.25);
  EXPECT_EQ(ConfigFromJson<BertConfig>(With(kBert, "attention_probs_dropout_prob", "0"))->attention_dropout, 0);
}

TEST(ConfigJsonTest, GptIsReadAsItWasWritten) {
  const GptConfig small = {.vocabulary = 7, .context = 5, .layers = 1, .heads = 2, .width = 8};
  GptConfig gpt2 = small, llama = small;
  gpt2.feed_forward = 9;
  gpt2.dropout = 0.3;
  gpt2.attention_dropout = 0.1;
  gpt2.embedding_dropout = 0;
  gpt2.activation = Activation::kRelu;
  gpt2.norm.epsilon = 1e-3;
  gpt2.tied_head = false;
  llama.names = GptConfig::Names::kLlama;
  llama.norm.kind = NormKind::kRmsNorm;
  llama.gated = true;
  llama.attention.rotary = RotaryLayout::kHalves;
  llama.attention.rotary_base = 5e5;
  llama.attention.key_value_heads = 1;
  llama.feed_forward = 9;
  llama.attention_dropout = 0.2;
  llama.activation = Activation::kGelu;
  GptConfig mistral = llama;
  mistral.attention.patterns = {{.window = 3}};
  mistral.bias = false;
  for (const GptConfig& config : {gpt2, llama, mistral}) {
    const absl::StatusOr<Json> json = ToJson(config);
    ASSERT_TRUE(json.ok()) << json.status();
    const absl::StatusOr<GptConfig> read = ConfigFromJson<GptConfig>(*json);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*ToJson(*read), *json);
    EXPECT_EQ(read->attention_dropout, config.attention_dropout);
    EXPECT_EQ(read->attention.patterns, config.attention.patterns);
    EXPECT_EQ(read->bias, config.bias);
    EXPECT_EQ(read->names, config.names);
    EXPECT_EQ(read->feed_forward, config.feed_forward);
    EXPECT_EQ(read->attention.rotary_base, config.attention.rotary_base);
    EXPECT_EQ(read->tied_head, config.tied_head);
  }
  EXPECT_EQ((*ToJson(mistral))["model_type"], "mistral");
}

std::string ErrorOf(const absl::StatusOr<Json>& json) { return std::string(json.status().message()); }

TEST(ConfigJsonTest, SaysWhatALayoutCannot) {
  EXPECT_THAT(ErrorOf(ToJson(GptConfig{.pre_norm = false})), HasSubstr("gpt2 cannot say that pre_norm is false"));
  EXPECT_THAT(ErrorOf(ToJson(GptConfig{.attention = {.rotary = RotaryLayout::kHalves}})),
              HasSubstr("that positions are rotary"));
  EXPECT_THAT(ErrorOf(ToJson(GptConfig{.names = GptConfig::Names::kLlama})),
              HasSubstr("llama cannot say that gated is false"));
  EXPECT_THAT(ErrorOf(ToNanoGptJson(GptConfig{})), HasSubstr("nanoGPT cannot say that the activation is another than"));
  EXPECT_EQ(ErrorOf(ToJson(GptConfig{.initializer = HeGaussian(), .zero_output = true})), "");  // trained weights
  EXPECT_THAT(ErrorOf(ToNanoGptJson(GptConfig{.activation = Activation::kGelu, .tied_head = false})),
              HasSubstr("tied_head is false"));
  EXPECT_THAT(ErrorOf(ToCTranslate2Json(TransformerConfig{})), HasSubstr("Transformer cannot say that pre_norm is"));
  EXPECT_THAT(ErrorOf(ToJson(BertConfig{.layers = 0})), HasSubstr("layers is 0, but must be at least 1"));
  EXPECT_THAT(ErrorOf(ToJson(GptConfig{.dtype = kF64})), HasSubstr("gpt2 cannot say that dtype is f64"));
  EXPECT_THAT(ErrorOf(ToJson(BertConfig{.dtype = kF64})), HasSubstr("bert cannot say that dtype is f64"));
  EXPECT_THAT(ErrorOf(ToJson(TransformerConfig{.dtype = kF64})), HasSubstr("transformer cannot say that dtype is f64"));
}

TEST(ConfigJsonTest, BatchNormIsRefused) {
  constexpr NormOptions kNorm = {.kind = NormKind::kBatchNorm};
  const std::pair<const char*, absl::StatusOr<Json>> kResults[] = {
      {"gpt2", ToJson(GptConfig{.norm = kNorm})},
      {"bert", ToJson(BertConfig{.norm = kNorm})},
      {"transformer", ToJson(TransformerConfig{.norm = kNorm})},
      {"vit", ToJson(VitConfig{.norm = kNorm})}};
  for (const auto& [type, json] : kResults) {
    EXPECT_EQ(ErrorOf(json), absl::StrCat("a configuration of ", type, " cannot say that norms are BatchNorm"));
  }
}

TEST(ConfigJsonTest, AnAblatedModelIsRefused) {
  constexpr Ablation kAblation = {.norm = true};
  const std::pair<const char*, absl::StatusOr<Json>> kResults[] = {
      {"gpt2", ToJson(GptConfig{.ablation = kAblation})},
      {"gpt2", ToNanoGptJson(GptConfig{.activation = Activation::kGelu, .ablation = kAblation})},
      {"bert", ToJson(BertConfig{.ablation = kAblation})},
      {"transformer", ToJson(TransformerConfig{.ablation = kAblation})},
      {"vit", ToJson(VitConfig{.ablation = kAblation})}};
  for (const auto& [type, json] : kResults) {
    EXPECT_EQ(ErrorOf(json), absl::StrCat("a configuration of ", type, " cannot say that parts are ablated"));
  }
}

TEST(ConfigJsonTest, AVariantOfAttentionIsRefusedByItsName) {
  const std::pair<const char*, AttentionVariant> kVariants[] = {
      {"window", {.patterns = {{.window = 3}}}},
      {"stride", {.patterns = {{}, {.stride = 2}}}},
      {"key_value_heads", {.key_value_heads = 1}},
      {"query_width", {.query_width = 4}},
      {"key_width", {.key_width = 4}},
      {"value_width", {.value_width = 4}},
      {"score", {.score = ScoreFunction::kAdditive}},
      {"head_merge", {.merge = HeadMerge::kAverage}},
      {"distance_bias", {.distance_bias = DistanceBias::kAlibi}},
      {"soft_cap", {.soft_cap = 2}},
  };
  for (const auto& [option, attention] : kVariants) {
    GptConfig gpt;
    BertConfig bert;
    VitConfig vit;
    gpt.attention = bert.attention = vit.attention = attention;
    EXPECT_THAT(ErrorOf(ToJson(gpt)), testing::ContainsRegex(absl::StrCat("gpt2 cannot say .*", option))) << option;
    EXPECT_THAT(ErrorOf(ToJson(bert)), testing::ContainsRegex(absl::StrCat("bert cannot say .*", option))) << option;
    EXPECT_THAT(ErrorOf(ToJson(vit)), testing::ContainsRegex(absl::StrCat("vit cannot say .*", option))) << option;
  }
}

TEST(ConfigJsonTest, NanoGptsArgumentsMayBeNested) {
  const Json args = Json::parse(R"({"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 6, "bias": false,
      "vocab_size": 65, "dropout": 0.2})");
  for (const Json& json : {args, Json{{"model_args", args}, {"iter_num", 7}}}) {
    const absl::StatusOr<GptConfig> config = NanoGptConfigFromJson(json);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->context, 6);
    EXPECT_FALSE(config->bias);
    EXPECT_EQ(config->activation, Activation::kGelu);
    EXPECT_EQ(*ToNanoGptJson(*config), args);
  }
}

TEST(ConfigJsonTest, BertIsReadAsItWasWritten) {
  const BertConfig config = {.vocabulary = 9,
                             .context = 6,
                             .segments = 3,
                             .layers = 1,
                             .heads = 2,
                             .width = 4,
                             .feed_forward = 5,
                             .dropout = 0.2,
                             .attention_dropout = 0.1,
                             .classifier_dropout = 0.5,
                             .norm = {.epsilon = 1e-6},
                             .activation = Activation::kGeluTanh};
  const absl::StatusOr<Json> json = ToJson(config);
  ASSERT_TRUE(json.ok()) << json.status();
  const absl::StatusOr<BertConfig> read = ConfigFromJson<BertConfig>(*json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*ToJson(*read), *json);
  EXPECT_EQ(read->classifier_dropout, 0.5);
  EXPECT_EQ(read->attention_dropout, 0.1);
}

TEST(ConfigJsonTest, AClassifierSaysWhatItPools) {
  EXPECT_EQ(ConfigFromJson<BertConfig>(With(kBert, "classifier_pooling", "\"mean\""))->classifier_pooling,
            Pooling::kMean);
  EXPECT_THAT(std::string(ConfigFromJson<BertConfig>(With(kBert, "classifier_pooling", "\"max\"")).status().message()),
              HasSubstr("classifier_pooling is \"max\""));
  const BertConfig mean = {.layers = 1, .heads = 2, .width = 8, .classifier_pooling = Pooling::kMean};
  EXPECT_EQ(ConfigFromJson<BertConfig>(*ToJson(mean))->classifier_pooling, Pooling::kMean);
  EXPECT_FALSE(ToJson(BertConfig())->contains("classifier_pooling"));
}

TEST(ConfigJsonTest, VitIsReadAsItWasWritten) {
  const VitConfig vit = {.image_height = 8,
                         .image_width = 12,
                         .channels = 1,
                         .patch_size = 4,
                         .classes = 3,
                         .layers = 2,
                         .heads = 2,
                         .width = 16,
                         .dropout = 0.25,
                         .norm = {.epsilon = 1e-6},
                         .activation = Activation::kRelu};
  const absl::StatusOr<Json> json = ToJson(vit);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)["image_size"], Json::parse("[8, 12]"));
  const absl::StatusOr<VitConfig> read = ConfigFromJson<VitConfig>(*json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*ToJson(*read), *json);
  EXPECT_EQ(read->classes, 3);
  EXPECT_EQ(read->image_width, 12);
  EXPECT_EQ(read->feed_forward, 64);
  constexpr char kVit[] = R"({"model_type": "vit"})";
  EXPECT_EQ(ConfigFromJson<VitConfig>(Json::parse(kVit))->patches(), 196);
  for (const auto& [key, value] : {std::pair{"image_size", "[8]"}, std::pair{"qkv_bias", "false"},
                                   std::pair{"attention_probs_dropout_prob", "0.1"}, std::pair{"patch_size", "13"}}) {
    EXPECT_FALSE(ConfigFromJson<VitConfig>(With(kVit, key, value)).ok()) << key;
  }
}

TEST(ConfigJsonTest, LabelsStandInTheOrderOfTheirIds) {
  EXPECT_THAT(*LabelsFromJson(Json::parse(R"({"id2label": {"1": "good", "0": "bad"}})")), ElementsAre("bad", "good"));
  Json json;
  AddLabels({"bad", "good"}, &json);
  EXPECT_THAT(*LabelsFromJson(json), ElementsAre("bad", "good"));
  EXPECT_EQ(json["label2id"]["good"], 1);
  for (const char* bad :
       {R"({"0": "a", "2": "b"})", R"({"x": "a"})", R"({"0": 1})", "[]", R"({"0": "a", "00": "b"})"}) {
    EXPECT_FALSE(LabelsFromJson(Json{{"id2label", Json::parse(bad)}}).ok()) << bad;
  }
  json["num_labels"] = 3;
  EXPECT_EQ(LabelsFromJson(json).status().message(), "num_labels is 3, but id2label has 2 labels");
  EXPECT_THAT(*LabelsFromJson({{"num_labels", 2}}), ElementsAre("LABEL_0", "LABEL_1"));
}

TEST(ConfigJsonTest, TransformerIsReadAsItWasWritten) {
  TransformerConfig config = {.source_vocabulary = 9,
                              .target_vocabulary = 8,
                              .context = 50,
                              .encoder_layers = 2,
                              .decoder_layers = 2,
                              .heads = 2,
                              .width = 6,
                              .feed_forward = 5,
                              .dropout = 0.2,
                              .attention_dropout = 0.1,
                              .activation_dropout = 0.05,
                              .label_smoothing = 0,
                              .activation = Activation::kGelu,
                              .pre_norm = true,
                              .norm = {.kind = NormKind::kRmsNorm, .epsilon = 1e-6},
                              .bias = false,
                              .positions = TransformerConfig::Positions::kLearned,
                              .first_position = 2,
                              .scale_embeddings = false,
                              .tied_head = false,
                              .head_bias = true,
                              .memory = TransformerConfig::Memory::kSameLayer,
                              .attention = {.query_width = 3,
                                            .key_width = 4,
                                            .value_width = 6,
                                            .score = ScoreFunction::kAdditive,
                                            .score_width = 7,
                                            .merge = HeadMerge::kAverage,
                                            .patterns = {{.window = 3, .stride = 2}, {}}}};
  const absl::StatusOr<Json> json = ToJson(config);
  ASSERT_TRUE(json.ok()) << json.status();
  const absl::StatusOr<TransformerConfig> read = ConfigFromJson<TransformerConfig>(*json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*ToJson(*read), *json);
  EXPECT_EQ(read->attention.score, ScoreFunction::kAdditive);
  EXPECT_EQ(read->attention.patterns[0].stride, 2);
  Json other = *json;
  other["decoder_ffn_dim"] = 6;
  EXPECT_THAT(std::string(ConfigFromJson<TransformerConfig>(other).status().message()),
              HasSubstr("decoder_ffn_dim is 6"));
  other = *json;
  other["attention_patterns"] = Json::parse("[[1]]");
  EXPECT_THAT(std::string(ConfigFromJson<TransformerConfig>(other).status().message()),
              HasSubstr("attention_patterns is [[1]]"));
}

}  // namespace
}  // namespace weft
