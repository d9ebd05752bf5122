// Each class is a row of kLayouts: its model_type, and the options that it fixes. marian_config.cc has the keys of
// config.json.
#include "weft/formats/marian.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "weft/base/status.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/generation.h"
#include "weft/formats/published.h"
#include "weft/formats/translation_tokenizer.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Positions = PositionKind;

constexpr absl::string_view kSides[] = {"encoder", "decoder"};

// The axis of a tensor that has the model's C features.
enum class Features : uint8_t { kNone, kRows, kColumns };

Features FeaturesOf(absl::string_view name) {
  for (const char* end : {"q_proj.weight", "k_proj.weight", "v_proj.weight", "fc1.weight", "embed_tokens.weight",
                          "shared.weight", "lm_head.weight"}) {
    if (absl::EndsWith(name, end)) return Features::kColumns;
  }
  for (const char* end :
       {"out_proj.weight", "out_proj.bias", "fc2.weight", "fc2.bias", "layer_norm.weight", "layer_norm.bias"}) {
    if (absl::EndsWith(name, end)) return Features::kRows;
  }
  return Features::kNone;
}

// Copies all tensors with the model's features in another order: from this project's interleaved order to halves or,
// if not `to_halves`, back.
absl::StatusOr<Weights> Permute(const Weights& weights, bool to_halves) {
  Weights permuted;
  for (const auto& [name, from] : weights.tensors()) {
    WEFT_ASSIGN_OR_RETURN(const Tensor to, permuted.Add(name, from.type));
    const Features axis = FeaturesOf(name);
    if (axis == Features::kNone || from.type.shape.rank() == 0) {
      std::memcpy(to.data, from.data, from.type.bytes());
      continue;
    }
    const bool columns = axis == Features::kColumns;
    const int64_t features = from.type.shape.dim(columns ? -1 : 0), half = features / 2;
    const int64_t others = from.type.shape.elements() / std::max<int64_t>(features, 1);
    for (int64_t i = 0; i < features; ++i) {
      // Feature i in halves is feature 2i, or 2 (i - C/2) + 1, of the interleaved order.
      const int64_t in_halves = i, interleaved = i < half ? 2 * i : 2 * (i - half) + 1;
      const int64_t source = to_halves ? interleaved : in_halves, target = to_halves ? in_halves : interleaved;
      for (int64_t j = 0; j < others; ++j) {
        const auto at = [&](int64_t feature) { return columns ? j * features + feature : feature * others + j; };
        to.as<float>()[at(target)] = from.as<float>()[at(source)];
      }
    }
  }
  return permuted;
}

std::string PositionsName(absl::string_view side) { return absl::StrCat(side, ".embed_positions.weight"); }

// Returns position embeddings as a class in halves computes them, with the frequencies of kSinusoidal.
float SinusoidInHalves(int64_t position, int64_t feature, int64_t width) {
  const int64_t half = width / 2;
  const int64_t interleaved = feature < half ? 2 * feature : 2 * (feature - half) + 1;
  return static_cast<float>(Sinusoid(position, interleaved, width, SinusoidLayout::kInterleaved));
}

// Adds each side's table of position embeddings for a class that has them as weights.
absl::Status AddPositions(const TransformerConfig& config, Weights* weights) {
  const SinusoidLayout layout =
      config.positions == Positions::kSinusoidal ? SinusoidLayout::kInterleaved : SinusoidLayout::kHalves;
  for (const absl::string_view side : kSides) {
    WEFT_ASSIGN_OR_RETURN(const Tensor table,
                          weights->Add(PositionsName(side), {kF32, {config.context, config.width}}));
    for (int64_t i = 0; i < table.type.shape.elements(); ++i) {
      const int64_t position = i / config.width + config.first_position;
      table.as<float>()[i] = static_cast<float>(Sinusoid(position, i % config.width, config.width, layout));
    }
  }
  return absl::OkStatus();
}

// Adds a bias of zeros for each linear layer of a block.
absl::Status AddZeroBiases(Weights* weights) {
  const std::vector<NamedTensor> tensors(weights->tensors().begin(), weights->tensors().end());
  for (const auto& [name, tensor] : tensors) {
    absl::string_view layer = name;
    if (!absl::ConsumeSuffix(&layer, ".weight")) continue;
    const bool linear =
        absl::EndsWith(layer, "_proj") || absl::EndsWith(layer, ".fc1") || absl::EndsWith(layer, ".fc2");
    if (linear) {
      WEFT_RETURN_IF_ERROR(weights->Add(absl::StrCat(layer, ".bias"), {kF32, {tensor.type.shape.dim(0)}}).status());
    }
  }
  return absl::OkStatus();
}

// Renames a tensor, which gets another shape of as many elements.
absl::Status Reshape(const std::string& from, const std::string& to, const Shape& shape, Weights* weights) {
  const Tensor* const tensor = weights->Find(from);
  if (tensor == nullptr || tensor->type.shape.elements() != shape.elements()) return absl::OkStatus();
  const Tensor old = *tensor;
  WEFT_RETURN_IF_ERROR(weights->Apply({{from, {}}}));
  WEFT_ASSIGN_OR_RETURN(const Tensor copy, weights->Add(to, {kF32, shape}));
  std::memcpy(copy.data, old.data, old.type.bytes());
  return absl::OkStatus();
}

constexpr char kLogitsBias[] = "final_logits_bias", kHeadBias[] = "lm_head.bias";

// Reports whether both sides' tables of positions, if they are there, are the class's sinusoids.
bool PositionsAreSinusoids(const Weights& weights, int64_t width) {
  constexpr float kTolerance = 1e-4f;  // published tables were computed in f32
  for (const absl::string_view side : kSides) {
    const Tensor* const table = weights.Find(PositionsName(side));
    if (table == nullptr || table->type.shape.rank() != 2 || table->type.shape.dim(1) != width) continue;
    for (int64_t i = 0; i < table->type.shape.elements(); ++i) {
      const float wanted = SinusoidInHalves(i / width, i % width, width);
      if (!(std::abs(table->as<const float>()[i] - wanted) <= kTolerance)) return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<PublishedModel> ReadMarian(const std::string& folder, const Json& json) {
  WEFT_ASSIGN_OR_RETURN(TransformerConfig config, Annotate(MarianConfigFromJson(json), ConfigPath(folder)));
  WEFT_ASSIGN_OR_RETURN(Weights weights, ReadFolderWeights(folder, {{{"model.#", {"#"}}}}));
  const std::string table = config.shared_embeddings ? "shared.weight" : "decoder.embed_tokens.weight";
  std::vector<std::string> copies;
  if (config.shared_embeddings) copies = {"decoder.embed_tokens.weight", "encoder.embed_tokens.weight"};
  for (const std::string& copy : copies) {
    WEFT_RETURN_IF_ERROR(Annotate(weights.Tie(table, copy), weights.path()));
  }
  // As in the package transformers, a head that differs from the token table stays.
  config.tied_head = config.tied_head && weights.Tie(table, "lm_head.weight").ok();
  std::vector<Weights::Rule> dropped;
  if (!config.shared_embeddings) dropped.push_back({"shared.weight", {}});
  const bool sinusoids = config.positions == Positions::kSinusoidal;
  if (sinusoids && PositionsAreSinusoids(weights, config.width)) {
    for (const absl::string_view side : kSides) dropped.push_back({PositionsName(side), {}});
  } else {
    config.positions = Positions::kLearned;
  }
  WEFT_RETURN_IF_ERROR(Annotate(weights.Apply(dropped), weights.path()));
  const Tensor* const bias = weights.Find(kLogitsBias);
  config.head_bias = bias != nullptr && bias->type.dtype == kF32;
  if (config.head_bias) {
    const absl::Span<const float> values = bias->span<const float>();
    config.head_bias = std::any_of(values.begin(), values.end(), [](float value) { return value != 0; });
  }
  if (config.head_bias) {
    WEFT_RETURN_IF_ERROR(Reshape(kLogitsBias, kHeadBias, {config.target_vocabulary}, &weights));
  } else {
    WEFT_RETURN_IF_ERROR(weights.Apply({{kLogitsBias, {}}}));
  }
  // Permute needs the shapes that Check has found.
  WEFT_RETURN_IF_ERROR(weights.Fit(ParametersOf(PublishedTransformer{config})));
  if (config.positions == Positions::kSinusoidal) {
    WEFT_ASSIGN_OR_RETURN(weights, Permute(weights, /*to_halves=*/false));
  }
  return PublishedModel(PublishedTransformer{config, std::move(weights)});
}

absl::Status WriteMarian(const std::string& folder, const PublishedTransformer& model) {
  TransformerConfig config = model.config;
  config.positions = Resolve(config.positions, config.attention, Positions::kSinusoidal);
  WEFT_ASSIGN_OR_RETURN(const std::string model_type, MarianTypeFor(config));
  Weights weights = model.weights;
  if (model_type != "blenderbot") {
    WEFT_ASSIGN_OR_RETURN(weights, Permute(weights, /*to_halves=*/true));
  } else if (config.positions != Positions::kLearned) {
    WEFT_RETURN_IF_ERROR(AddPositions(config, &weights));
  }
  if (!config.bias) WEFT_RETURN_IF_ERROR(AddZeroBiases(&weights));
  if (!config.head_bias) WEFT_RETURN_IF_ERROR(weights.Add(kHeadBias, {kF32, {config.target_vocabulary}}).status());
  WEFT_RETURN_IF_ERROR(Reshape(kHeadBias, kLogitsBias, {1, config.target_vocabulary}, &weights));
  WEFT_RETURN_IF_ERROR(weights.Apply(
      {{"encoder.#", {"model.encoder.#"}}, {"decoder.#", {"model.decoder.#"}}, {"shared.#", {"model.shared.#"}}}));
  WEFT_ASSIGN_OR_RETURN(const TranslationTokens tokens, ReadTranslationTokens(folder, model.tokens));
  if (!tokens.published) {
    WEFT_RETURN_IF_ERROR(CheckExpressible(model_type, {{tokens.source_begin, "sources have a begin token"},
                                                       {!tokens.source_end, "sources have no end token"}}));
    WEFT_RETURN_IF_ERROR(WriteTranslationTokenizer(folder, config.context, tokens));
    WEFT_RETURN_IF_ERROR(WriteJson(folder + "/" + kGenerationConfig, {{"decoder_start_token_id", tokens.begin},
                                                                      {"bos_token_id", tokens.begin},
                                                                      {"eos_token_id", tokens.end},
                                                                      {"pad_token_id", tokens.padding},
                                                                      {"max_length", config.context},
                                                                      // As weft translate searches by default.
                                                                      {"num_beams", 4},
                                                                      {"early_stopping", true}}));
  }
  return WriteModelFolder(folder, MarianToJson(model_type, config, tokens), weights);
}

}  // namespace weft
