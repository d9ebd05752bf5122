// Exported Transformers are compared with what other programs make of them. tests/peers/exports.py wrote the expected
// values: the logits of transformers, and a model.bin of CTranslate2's own classes.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/formats/config_json.h"
#include "weft/formats/weights.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Positions = PositionKind;
using ::testing::HasSubstr;

constexpr char kPeers[] = "tests/peers/exports/";
constexpr WriteModelOptions kPublishedOnly = {.published_classes_only = true};

std::string Folder(const std::string& name) {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = absl::StrCat(testing::TempDir(), "/", test->name(), "/", name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TransformerConfig Small() {
  return {.source_vocabulary = 7,
          .target_vocabulary = 7,
          .context = 6,
          .encoder_layers = 1,
          .decoder_layers = 1,
          .heads = 2,
          .width = 4,
          .feed_forward = 5};
}
TransformerConfig SmallPreNorm() {
  TransformerConfig config = Small();
  config.pre_norm = config.shared_embeddings = true;
  return config;
}

// Makes the weights of exports.py: element i of tensor k, in the order of the names, is ((7 i + 13 k) mod 31 - 15)
// / 16.
PublishedTransformer WithWeights(const TransformerConfig& config) {
  PublishedTransformer model = {config, {}};
  std::map<std::string, TensorType> types;
  for (const ParameterSpec& spec : ParametersOf(model)) types[spec.name] = spec.type;
  int64_t k = 0;
  for (const auto& [name, type] : types) {
    const Tensor tensor = *model.weights.Add(name, type);
    for (int64_t i = 0; i < type.shape.elements(); ++i) {
      tensor.as<float>()[i] = static_cast<float>((7 * i + 13 * k) % 61 - 30) / 32;
    }
    ++k;
  }
  return model;
}

// Returns the logits that Weft computes, for the tokens of exports.py.
std::vector<float> Logits(const PublishedTransformer& model) {
  const std::vector<int32_t> from = {3, 4, 5, 6, 2}, to = {1, 6, 3, 4};
  Tape tape;
  const Var source = tape.Input("source", {kI32, {1, 5}}, {.below = model.config.source_vocabulary});
  const Var target = tape.Input("target", {kI32, {1, 4}}, {.below = model.config.target_vocabulary});
  const Var logits = Transformer(model.config).Logits(source, target);
  absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {logits}, .mode = kEval});
  EXPECT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*std::move(graph), &parameters, {.threads = 1});
  const absl::Status set = parameters.Set("the model", model.weights.tensors());
  EXPECT_TRUE(set.ok()) << set;
  const absl::StatusOr<Outputs> outputs = runner.Run({{source, from}, {target, to}});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  const absl::Span<const float> values = (*outputs)[logits].span<const float>();
  return {values.begin(), values.end()};
}

std::map<std::string, std::string> Contents(const Weights& weights) {
  std::map<std::string, std::string> contents;
  for (const auto& [name, tensor] : weights.tensors()) {
    contents[absl::StrCat(name, " ", ToString(tensor.type))] =
        std::string(reinterpret_cast<const char*>(tensor.data), tensor.type.bytes());
  }
  return contents;
}

void ExpectLikeTransformers(const TransformerConfig& config, const std::string& model_type) {
  SCOPED_TRACE(model_type);
  const Json expected = Json::parse(*ReadFile(absl::StrCat(kPeers, "expected.json")))[model_type];
  const PublishedTransformer model = WithWeights(config);
  const std::string folder = Folder(model_type);
  const absl::Status written = WriteModel(folder, model, "huggingface", kPublishedOnly);
  ASSERT_TRUE(written.ok()) << written;
  const Json json = Json::parse(*ReadFile(folder + "/config.json"));
  EXPECT_EQ(json["model_type"], model_type);
  EXPECT_EQ(json["architectures"][0], expected["class"]);
  const absl::StatusOr<PublishedModel> read = ReadModel(folder);
  ASSERT_TRUE(read.ok()) << read.status();
  const auto& again = std::get<PublishedTransformer>(*read);
  EXPECT_TRUE(Contents(again.weights) == Contents(model.weights));
  const auto wanted = expected["logits"].get<std::vector<float>>();
  EXPECT_THAT(Logits(model), testing::Pointwise(testing::FloatNear(1e-5f), wanted));
  EXPECT_THAT(Logits(again), testing::Pointwise(testing::FloatNear(1e-5f), wanted));
}

TEST(ExportedModelsTest, LogitsAreThoseOfTransformers) {
  ExpectLikeTransformers(Small(), "marian");
  TransformerConfig automatic = Small();
  automatic.positions = Positions::kAuto;
  ExpectLikeTransformers(automatic, "marian");
  ExpectLikeTransformers(SmallPreNorm(), "pegasus");
  TransformerConfig learned = SmallPreNorm();
  learned.positions = Positions::kLearned;
  ExpectLikeTransformers(learned, "blenderbot");
}

// Features 0, 1, 2, 3 of this project are features 0, 2, 1, 3 in halves.
TEST(ExportedModelsTest, FeaturesArePermutedForSinusoidsInHalves) {
  const PublishedTransformer model = WithWeights(Small());
  const std::string folder = Folder("marian");
  ASSERT_TRUE(WriteModel(folder, model, "huggingface", kPublishedOnly).ok());
  const Weights theirs = *Weights::Read(folder + "/model.safetensors");
  const auto value = [](const Weights& weights, const std::string& name, int64_t i) {
    return weights.Find(name)->as<const float>()[i];
  };
  const std::string layer = "encoder.layers.0.";
  for (const auto& [theirs_at, ours_at] : {std::pair{0, 0}, {1, 2}, {2, 1}, {3, 3}}) {
    for (const std::string name : {"encoder.embed_tokens.weight", "encoder.layers.0.self_attn.v_proj.weight"}) {
      EXPECT_EQ(value(theirs, "model." + name, 4 + theirs_at), value(model.weights, name, 4 + ours_at)) << name;
    }
    for (const std::string name : {"self_attn.out_proj.bias", "final_layer_norm.weight", "fc2.bias"}) {
      EXPECT_EQ(value(theirs, "model." + layer + name, theirs_at), value(model.weights, layer + name, ours_at)) << name;
    }
    EXPECT_EQ(value(theirs, "model." + layer + "fc2.weight", 5 * theirs_at),
              value(model.weights, layer + "fc2.weight", 5 * ours_at));
  }
  EXPECT_EQ(value(theirs, "model." + layer + "self_attn.q_proj.bias", 1),
            value(model.weights, layer + "self_attn.q_proj.bias", 1))
      << "features of heads keep their order";
}

// Blenderbot's positions are weights, which can hold sinusoids of any kind.
TEST(ExportedModelsTest, OtherSinusoidsBecomeATable) {
  TransformerConfig config = SmallPreNorm();
  config.positions = Positions::kSinusoidalHalves;
  config.first_position = 1;
  config.head_bias = true;
  config.bias = false;
  const PublishedTransformer model = WithWeights(config);
  const std::string folder = Folder("blenderbot");
  ASSERT_TRUE(WriteModel(folder, model, "huggingface", kPublishedOnly).ok());
  const absl::StatusOr<PublishedModel> read = ReadModel(folder);
  ASSERT_TRUE(read.ok()) << read.status();
  const auto& again = std::get<PublishedTransformer>(*read);
  EXPECT_EQ(again.config.positions, Positions::kLearned);
  EXPECT_TRUE(again.config.head_bias);
  EXPECT_THAT(Logits(again), testing::Pointwise(testing::FloatNear(1e-5f), Logits(model)));
}

// transformers 5.24 takes the table from any of its four names, and leaves a head untied that differs from the table.
TEST(ExportedModelsTest, AHeadThatDiffersFromTheTableStays) {
  const PublishedTransformer model = WithWeights(SmallPreNorm());
  const std::string folder = Folder("tied"), path = folder + "/model.safetensors";
  ASSERT_TRUE(WriteModel(folder, model, "huggingface", kPublishedOnly).ok());
  Weights weights = *Weights::Read(path);
  for (const char* const name : {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.shared.weight"}) {
    Weights renamed = weights;
    ASSERT_TRUE(renamed.Apply({{"model.shared.weight", {name}}}).ok());
    ASSERT_TRUE(WriteSafetensors(path, renamed.tensors()).ok());
    const absl::StatusOr<PublishedModel> read = ReadModel(folder);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(Logits(std::get<PublishedTransformer>(*read)),
                testing::Pointwise(testing::FloatNear(1e-5f), Logits(model)))
        << name;
  }
  ASSERT_TRUE(weights.Add("lm_head.weight", weights.Find("model.shared.weight")->type).ok());
  ASSERT_TRUE(WriteSafetensors(path, weights.tensors()).ok());
  const absl::StatusOr<PublishedModel> read = ReadModel(folder);
  ASSERT_TRUE(read.ok()) << read.status();
  const auto& untied = std::get<PublishedTransformer>(*read);
  EXPECT_FALSE(untied.config.tied_head);
  EXPECT_NE(untied.weights.Find("lm_head.weight"), nullptr);
}

TEST(ExportedModelsTest, ModelBinIsCTranslate2s) {
  const std::string folder = Folder("ctranslate2");
  ASSERT_TRUE(WriteModel(folder, WithWeights(Small()), "ctranslate2").ok());
  const std::string got = *ReadFile(folder + "/model.bin"), wanted = *ReadFile(absl::StrCat(kPeers, "ctranslate2.bin"));
  ASSERT_EQ(got.size(), wanted.size());
  EXPECT_TRUE(got == wanted) << "byte " << std::mismatch(got.begin(), got.end(), wanted.begin()).first - got.begin();
  const Json json = Json::parse(*ReadFile(folder + "/config.json"));
  EXPECT_EQ(json["decoder_start_token"], "<s>");
  EXPECT_EQ(json["layer_norm_epsilon"], 1e-5);
}

// Without an epsilon in config.json, CTranslate2 takes 1e-5 for layer norms and 1e-6 for RMSNorm.
TEST(ExportedModelsTest, AMissingEpsilonIsThatOfTheNorm) {
  for (const auto& [kind, usual] : {std::pair{NormKind::kLayerNorm, 1e-5}, {NormKind::kRmsNorm, 1e-6}}) {
    TransformerConfig config = Small();
    config.norm = {.kind = kind, .epsilon = 1e-3};
    const std::string folder = Folder("ctranslate2"), path = folder + "/config.json";
    const absl::Status written = WriteModel(folder, WithWeights(config), "ctranslate2");
    ASSERT_TRUE(written.ok()) << written;
    Json json = Json::parse(*ReadFile(path));
    for (const bool given : {true, false}) {
      if (!given) json["layer_norm_epsilon"] = nullptr;
      ASSERT_TRUE(WriteFile(path, {json.dump()}).ok());
      const absl::StatusOr<PublishedTransformer> read = ReadModelOf<PublishedTransformer>(folder);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->config.norm.kind, kind);
      EXPECT_EQ(read->config.norm.epsilon, given ? 1e-3 : usual);
    }
  }
}

TEST(ExportedModelsTest, ErrorsNameTheOptionAndTheClassesThatWereTried) {
  const auto error = [](const TransformerConfig& config) {
    return std::string(
        WriteModel("nowhere", PublishedTransformer{config, {}}, "huggingface", kPublishedOnly).message());
  };
  TransformerConfig config = Small();
  config.pre_norm = true;
  EXPECT_EQ(error(config),
            "no class of Hugging Face has this Transformer: not marian, because pre_norm is true; not pegasus, because "
            "shared_embeddings is false; not m2m_100, because shared_embeddings is false; not blenderbot, because "
            "shared_embeddings is false; not bart, because pre_norm is true; not mbart, because shared_embeddings is "
            "false; not t5, because shared_embeddings is false; not mt5, because shared_embeddings is false; not umt5, "
            "because shared_embeddings is false");
  config = SmallPreNorm();
  config.norm.kind = NormKind::kRmsNorm;
  EXPECT_THAT(error(config), HasSubstr("not pegasus, because norm is rms_norm"));
  config.norm.kind = NormKind::kBatchNorm;
  EXPECT_THAT(error(config), HasSubstr("not pegasus, because norm is batch_norm"));
  config = Small();
  config.positions = Positions::kLearned;
  EXPECT_THAT(error(config), HasSubstr("not marian, because positions are learned"));
}

TEST(ExportedModelsTest, AnUnusualOptionIsRefusedByAllLayouts) {
  const auto expect = [](const TransformerConfig& config, const std::string& option) {
    EXPECT_THAT(
        std::string(WriteModel("nowhere", PublishedTransformer{config, {}}, "huggingface", kPublishedOnly).message()),
        HasSubstr("not marian, because " + option));
    EXPECT_EQ(std::string(WriteModel("nowhere", PublishedTransformer{config, {}}, "ctranslate2").message()),
              "a configuration of CTranslate2's Transformer cannot say that " + option);
  };
  TransformerConfig config = Small();
  config.attention.score = ScoreFunction::kAdditive;
  expect(config, "score is additive");
  config = Small();
  config.attention.merge = HeadMerge::kAverage;
  expect(config, "head_merge is average");
  config = Small();
  config.attention.patterns = {{.window = 2, .stride = 0}};
  expect(config, "window is 2");
  config = Small();
  config.memory = TransformerConfig::Memory::kSameLayer;
  expect(config, "memory is same-layer");
  config = Small();
  config.attention.value_width = 3;
  expect(config, "value_width is 3");
  config = Small();
  config.attention.key_value_heads = 1;
  expect(config, "key_value_heads is 1");
  config = Small();
  config.attention.soft_cap = 30;
  expect(config, "soft_cap is 30");
  config = Small();
  config.attention.distance_bias = DistanceBias::kAlibi;
  expect(config, "distance_bias is alibi");
  config = Small();
  config.attention.rotary = RotaryLayout::kHalves;
  expect(config, "positions are rotary");
  config = Small();
  config.positions = Positions::kNone;
  expect(config, "positions are none");
  config = Small();
  config.gated = true;
  expect(config, "gated is true");
  config = Small();
  config.ablation = {.residual = true, .value = true};
  expect(config, "ablate is residual,value");
}

}  // namespace
}  // namespace weft
