// The layouts of the encoder-decoder: our own, and CTranslate2's (https://github.com/OpenNMT/CTranslate2).
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/published.h"
#include "weft/formats/weights.h"
#include "weft/formats/write_weights.h"

namespace weft {
namespace {

// Of a layer: a name of theirs, and ours; several of ours are theirs one below the other.
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

// Norms have a gamma and a beta, in theirs.
std::string Array(absl::string_view theirs, const char* ours) {
  if (!absl::EndsWith(theirs, "layer_norm")) return ours;
  return ours == absl::string_view("weight") ? "gamma" : "beta";
}

template <class Visit>  // visit(theirs, ours) of each tensor outside the layers
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

absl::StatusOr<PublishedTransformer> ReadCTranslate2(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadConfig(folder));
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
  WEFT_RETURN_IF_ERROR(Parameters::Check(WeightsPath(folder), weights.tensors(), ParametersOf(*config)));
  return PublishedTransformer{*config, std::move(weights)};
}

absl::Status WriteCTranslate2(const std::string& folder, const PublishedTransformer& model) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ToCTranslate2Json(model.config));
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

absl::StatusOr<PublishedTransformer> ReadTransformer(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadConfig(folder));
  absl::StatusOr<TransformerConfig> config = TransformerConfigFromJson(json);
  if (!config.ok()) return Annotate(config.status(), ConfigPath(folder));
  WEFT_ASSIGN_OR_RETURN(Weights weights, ReadFolderWeights(folder, {}));
  WEFT_RETURN_IF_ERROR(Parameters::Check(WeightsPath(folder), weights.tensors(), ParametersOf(*config)));
  return PublishedTransformer{*config, std::move(weights)};
}

absl::Status WriteHuggingFace(const std::string& folder, const PublishedTransformer& model) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ToJson(model.config));
  return WriteModelFolder(folder, json, model.weights);
}

}  // namespace weft
