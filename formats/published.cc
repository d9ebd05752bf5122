#include "weft/formats/published.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"

namespace weft {

std::string ConfigPath(const std::string& folder) { return folder + "/config.json"; }
std::string WeightsPath(const std::string& folder) { return folder + "/model.safetensors"; }

absl::StatusOr<nlohmann::ordered_json> ReadConfig(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(ConfigPath(folder)));
  absl::StatusOr<nlohmann::ordered_json> json = ParseJsonObject(text);
  if (!json.ok()) return Annotate(json.status(), ConfigPath(folder));
  return json;
}

absl::StatusOr<Weights> ReadFolderWeights(const std::string& folder,
                                          const std::vector<std::vector<Weights::Rule>>& rules) {
  WEFT_ASSIGN_OR_RETURN(Weights weights, Weights::ReadSafetensors(WeightsPath(folder)));
  for (const std::vector<Weights::Rule>& step : rules) {
    WEFT_RETURN_IF_ERROR(Annotate(weights.Apply(step), WeightsPath(folder)));
  }
  return weights;
}

std::vector<Weights::Rule> TransposeGpt2() {
  std::vector<Weights::Rule> rules;
  for (const char* name :
       {"h.#.attn.c_attn.weight", "h.#.attn.c_proj.weight", "h.#.mlp.c_fc.weight", "h.#.mlp.c_proj.weight"}) {
    rules.push_back({name, {name}, /*transpose=*/true});
  }
  return rules;
}

absl::StatusOr<PublishedGpt> WithRotary(const PublishedGpt& gpt, RotaryLayout layout) {
  if (gpt.config.rotary == layout || !gpt.config.rotary) return gpt;
  PublishedGpt result = {.config = gpt.config};
  result.config.rotary = layout;
  const int64_t width = gpt.config.width / gpt.config.heads, half = width / 2;
  for (const auto& [name, from] : gpt.weights.tensors()) {
    WEFT_ASSIGN_OR_RETURN(const Tensor to, result.weights.Add(name, from.type));
    if (!absl::StrContains(name, ".self_attn.q_proj.") && !absl::StrContains(name, ".self_attn.k_proj.")) {
      std::memcpy(to.data, from.data, from.type.bytes());
      continue;
    }
    // Row 2i + j of a head in pairs is row i + j·half in halves.
    const int64_t rows = from.type.shape.dim(0), bytes = static_cast<int64_t>(from.type.bytes()) / rows;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t head = row / width * width, i = row % width, pairs = head + i % half * 2 + i / half;
      const bool to_halves = layout == RotaryLayout::kHalves;
      std::memcpy(to.data + (to_halves ? row : pairs) * bytes, from.data + (to_halves ? pairs : row) * bytes,
                  static_cast<size_t>(bytes));
    }
  }
  return result;
}

absl::StatusOr<PublishedGpt> WithBiases(const PublishedGpt& gpt) {
  PublishedGpt result = gpt;
  result.config.bias = true;
  for (const ParameterSpec& spec : ParametersOf(result.config)) {
    if (absl::EndsWith(spec.name, ".bias") && gpt.weights.Find(spec.name) == nullptr) {
      WEFT_RETURN_IF_ERROR(result.weights.Add(spec.name, spec.type).status());
    }
  }
  return result;
}

}  // namespace weft
