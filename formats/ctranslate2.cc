// This file defines the format of CTranslate2 (https://github.com/OpenNMT/CTranslate2), for encoder-decoder
// Transformers as OpenNMT trains them. A folder has a config.json, and a model.safetensors with CTranslate2's names.
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"
#include "weft/formats/weights.h"
#include "weft/formats/write_weights.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Positions = TransformerConfig::Positions;
using Memory = TransformerConfig::Memory;

template <class Keys, class Config>
void ListCTranslate2(Keys& keys, Config& config) {
  keys.Field("source_vocab", config.source_vocabulary);
  keys.Field("target_vocab", config.target_vocabulary);
  keys.Field("encoder_layers", config.encoder_layers);
  keys.Field("decoder_layers", config.decoder_layers);
  keys.Field("num_heads", config.heads);
  keys.Field("d_model", config.width);
  keys.Field("ffn_dim", config.feed_forward);
  keys.Field("layer_norm_eps", config.norm.epsilon);
  keys.Choice("activation", kActivations, config.activation);
}

// A part of a layer has one name in CTranslate2, and one or more in this project. If it has several here, CTranslate2's
// tensor has the rows of all of this project's tensors, in this order.
struct LayerName {
  const char* theirs;
  std::vector<const char*> ours;
};
const std::vector<LayerName>& LayerNames() {
  static const auto* const names = new std::vector<LayerName>{
      {"self_attention/layer_norm", {"self_attn_layer_norm"}},
      {"self_attention/linear_0", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
      {"self_attention/linear_1", {"self_attn.out_proj"}},
      {"attention/layer_norm", {"encoder_attn_layer_norm"}},
      {"attention/linear_0", {"encoder_attn.q_proj"}},
      {"attention/linear_1", {"encoder_attn.k_proj", "encoder_attn.v_proj"}},
      {"attention/linear_2", {"encoder_attn.out_proj"}},
      {"ffn/layer_norm", {"final_layer_norm"}},
      {"ffn/linear_0", {"fc1"}},
      {"ffn/linear_1", {"fc2"}}};
  return *names;
}

// Returns CTranslate2's name for the array `ours`, "weight" or "bias", of the part `theirs`. In a norm, this is "gamma"
// or "beta"; elsewhere it is `ours`.
std::string Array(absl::string_view theirs, const char* ours) {
  if (!absl::EndsWith(theirs, "layer_norm")) return ours;
  return ours == absl::string_view("weight") ? "gamma" : "beta";
}

// Calls visit(theirs, ours) for each tensor outside the layers, with its names in CTranslate2 and in this project.
template <class Visit>
void VisitOthers(Visit visit) {
  for (const char* side : {"encoder", "decoder"}) {
    visit(absl::StrCat(side, "/embeddings/weight"), absl::StrCat(side, ".embed_tokens.weight"));
    for (const char* array : {"weight", "bias"}) {
      visit(absl::StrCat(side, "/layer_norm/", Array("layer_norm", array)), absl::StrCat(side, ".layer_norm.", array));
    }
  }
  for (const char* array : {"weight", "bias"}) {
    visit(absl::StrCat("decoder/projection/", array), absl::StrCat("lm_head.", array));
  }
}

}  // namespace

absl::StatusOr<TransformerConfig> CTranslate2ConfigFromJson(const Json& json) {
  KeyReader keys(json);
  TransformerConfig config = {.pre_norm = true,
                              .positions = Positions::kSinusoidalHalves,
                              .first_position = 1,
                              .tied_head = false,
                              .head_bias = true};
  ListCTranslate2(keys, config);
  keys.Only("source_has_bos_eos", false);
  WEFT_RETURN_IF_ERROR(keys.Refused());  // not Finish, because all other keys are annotations
  WEFT_RETURN_IF_ERROR(Validate(config));
  return config;
}

absl::StatusOr<Json> ToCTranslate2Json(const TransformerConfig& config) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  const int64_t width = config.width / config.heads;
  const auto differs = [](int64_t value, int64_t usual) { return value != 0 && value != usual; };
  WEFT_RETURN_IF_ERROR(CheckExpressible(
      "CTranslate2's Transformer",
      {{!config.pre_norm, "pre_norm is false"},
       {config.norm.kind != NormKind::kLayerNorm, "norms are RMSNorm"},
       {!config.bias, "bias is false"},
       {config.positions != Positions::kSinusoidalHalves, "positions are no sinusoids in halves"},
       {config.first_position != 1, "first_position is not 1"},
       {!config.scale_embeddings, "scale_embeddings is false"},
       {config.shared_embeddings, "shared_embeddings is true"},
       {config.tied_head, "tied_head is true"},
       {!config.head_bias, "head_bias is false"},
       {config.memory != Memory::kLast, "decoder layers attend to the encoder layers of the same number"},
       {differs(config.attention.query_width, width) || differs(config.attention.key_width, width) ||
            differs(config.attention.value_width, width),
        "heads have widths of their own"},
       {config.attention.score != ScoreFunction::kDot, "attention is additive"},
       {config.attention.merge != HeadMerge::kProject, "heads are averaged"},
       {!config.attention.patterns.empty(), "attention has patterns"},
       {config.dtype != kF32, "dtype is f64"}}));
  KeyWriter keys;
  TransformerConfig full = config;
  if (full.feed_forward == 0) full.feed_forward = 4 * full.width;
  ListCTranslate2(keys, full);
  return std::move(keys).Finish();
}

absl::StatusOr<PublishedTransformer> ReadCTranslate2(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const Json json, ReadConfig(folder));
  absl::StatusOr<TransformerConfig> config = CTranslate2ConfigFromJson(json);
  if (!config.ok()) return Annotate(config.status(), ConfigPath(folder));
  std::vector<Weights::Rule> others, layers;
  VisitOthers([&](std::string theirs, std::string ours) { others.push_back({std::move(theirs), {std::move(ours)}}); });
  for (const char* side : {"encoder", "decoder"}) {
    others.push_back({absl::StrCat(side, "/layer_#"), {absl::StrCat(side, ".layers.#")}});
  }
  for (const auto& [theirs, ours] : LayerNames()) {
    for (const char* array : {"weight", "bias"}) {
      Weights::Rule rule = {absl::StrCat("#/", theirs, "/", Array(theirs, array))};
      for (const char* name : ours) rule.to.push_back(absl::StrCat("#.", name, ".", array));
      layers.push_back(std::move(rule));
    }
  }
  WEFT_ASSIGN_OR_RETURN(Weights weights, ReadFolderWeights(folder, {others, layers}));
  WEFT_RETURN_IF_ERROR(
      Parameters::Check(WeightsPath(folder), weights.tensors(), ParametersOf(PublishedTransformer{*config})));
  return PublishedTransformer{*config, std::move(weights)};
}

absl::Status WriteCTranslate2(const std::string& folder, const PublishedTransformer& model) {
  WEFT_ASSIGN_OR_RETURN(const Json json, ToCTranslate2Json(model.config));
  Weights weights = model.weights;
  for (const char* side : {"encoder", "decoder"}) {
    const bool decoder = absl::string_view(side) == "decoder";
    for (int64_t i = 0; i < (decoder ? model.config.decoder_layers : model.config.encoder_layers); ++i) {
      for (const auto& [theirs, ours] : LayerNames()) {
        if (!decoder && absl::StartsWith(theirs, "attention/")) continue;
        for (const char* array : {"weight", "bias"}) {
          std::vector<std::string> from;
          for (const char* name : ours) from.push_back(absl::StrCat(side, ".layers.", i, ".", name, ".", array));
          const std::string to = absl::StrCat(side, "/layer_", i, "/", theirs, "/", Array(theirs, array));
          WEFT_RETURN_IF_ERROR(Annotate(weights.Join(from, to), "the model"));
        }
      }
    }
  }
  std::vector<Weights::Rule> others;
  VisitOthers([&](std::string theirs, std::string ours) { others.push_back({std::move(ours), {std::move(theirs)}}); });
  WEFT_RETURN_IF_ERROR(weights.Apply(others));
  return WriteModelFolder(folder, json, weights);
}

constexpr Format kCTranslate2Format = {
    .name = "ctranslate2",
    .mark = "ffn_dim (CTranslate2)",
    .recognizes = [](const Json& config) { return config.contains("ffn_dim"); },
    .family = [](const Json&) -> absl::StatusOr<const ModelFamily*> { return &PublishedTransformer::kFamily; },
    .read = [](const std::string& folder) { return AsAnyModel(ReadCTranslate2(folder)); },
    .writes = [](const ModelFamily& family) { return &family == &PublishedTransformer::kFamily; },
    .write = [](const std::string& folder, const PublishedModel& model,
                const WriteModelOptions&) { return WriteCTranslate2(folder, std::get<PublishedTransformer>(model)); },
    .files = kFolderFiles,
};

}  // namespace weft
