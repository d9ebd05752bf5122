// Most conversions are rules for Weights::Apply. WithRotary and WithBiases allocate tensors instead, because no rule
// reorders rows or adds tensors.
#include "weft/formats/gpt_layouts.h"

#include <cstring>

#include "absl/strings/match.h"
#include "weft/base/status.h"
#include "weft/formats/published.h"

namespace weft {

absl::string_view TokenTable(const GptConfig& config) {
  return config.names == GptConfig::Names::kLlama ? "model.embed_tokens" : "wte";
}

std::vector<Weights::Rule> GptTensorsToDrop() {
  return {{"h.#.attn.bias", {}}, {"h.#.attn.masked_bias", {}}, {"#.rotary_emb.inv_freq", {}}};
}

absl::StatusOr<PublishedGpt> WithRotary(const PublishedGpt& gpt, RotaryLayout layout) {
  if (gpt.config.attention.rotary == layout || !gpt.config.attention.rotary) return gpt;
  PublishedGpt result = {.config = gpt.config};
  result.config.attention.rotary = layout;
  const int64_t width = gpt.config.width / gpt.config.heads, half = width / 2;
  for (const auto& [name, from] : gpt.weights.tensors()) {
    WEFT_ASSIGN_OR_RETURN(const Tensor to, result.weights.Add(name, from.type));
    if (!absl::StrContains(name, ".self_attn.q_proj.") && !absl::StrContains(name, ".self_attn.k_proj.")) {
      std::memcpy(to.data, from.data, from.type.bytes());
      continue;
    }
    // A head has `width` rows, and half = width / 2. In layout kPairs, rotation k turns rows 2k and 2k + 1 of a head;
    // in layout kHalves, it turns rows k and k + half.
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
  WEFT_RETURN_IF_ERROR(AddZeroBiases(ParametersOf(result), &result.weights));
  return result;
}

}  // namespace weft
