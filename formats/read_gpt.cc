#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/published.h"
#include "weft/formats/weights.h"

namespace weft {
namespace {

using Rules = std::vector<Weights::Rule>;

// What other than parameters PyTorch's modules keep: the causal mask; and where it is tied, the head.
Rules Dropped(const GptConfig& config) {
  Rules rules = {{"h.#.attn.bias", {}}, {"h.#.attn.masked_bias", {}}};
  if (config.tied_head) rules.push_back({"lm_head.weight", {}});
  return rules;
}

}  // namespace

absl::StatusOr<PublishedGpt> ReadGpt(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadConfig(folder));
  absl::StatusOr<GptConfig> config = GptConfigFromJson(json);
  if (!config.ok()) return Annotate(config.status(), ConfigPath(folder));
  std::vector<Rules> rules = {{{"transformer.#", {"#"}}}, Dropped(*config)};
  if (config->names == GptConfig::Names::kLlama) {
    rules = {{{"#.rotary_emb.inv_freq", {}}}};
    if (config->tied_head) rules[0].push_back({"lm_head.weight", {}});
  } else if (const auto type = json.find("model_type"); type == json.end() || type->is_null() || *type == "gpt2") {
    rules.push_back(TransposeGpt2());
  }
  WEFT_ASSIGN_OR_RETURN(Weights weights, ReadFolderWeights(folder, rules));
  WEFT_RETURN_IF_ERROR(Parameters::Check(WeightsPath(folder), weights.tensors(), ParametersOf(*config)));
  return PublishedGpt{*config, std::move(weights)};
}

absl::StatusOr<PublishedGpt> ReadNanoGpt(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadConfig(folder));
  absl::StatusOr<GptConfig> config = NanoGptConfigFromJson(json);
  if (!config.ok()) return Annotate(config.status(), ConfigPath(folder));
  // The first prefix is torch.compile's.
  WEFT_ASSIGN_OR_RETURN(
      Weights weights,
      ReadFolderWeights(folder, {{{"_orig_mod.#", {"#"}}}, {{"transformer.#", {"#"}}}, Dropped(*config)}));
  if (!config->bias) {
    for (const ParameterSpec& spec : ParametersOf(*config)) {
      const bool norm = spec.type.shape.rank() == 1 && absl::EndsWith(spec.name, ".bias");
      if (norm && weights.Find(spec.name) == nullptr) WEFT_RETURN_IF_ERROR(weights.Add(spec.name, spec.type).status());
    }
  }
  WEFT_RETURN_IF_ERROR(Parameters::Check(WeightsPath(folder), weights.tensors(), ParametersOf(*config)));
  return PublishedGpt{*config, std::move(weights)};
}

}  // namespace weft
