#include "weft/formats/write_weights.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

bool IsZero(const Tensor& tensor) {
  const absl::Span<const float> values = tensor.span<const float>();
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

// Whether the model has no bias but those of norms, and these are 0.
bool HasNoBias(const PublishedGpt& gpt) {
  if (gpt.config.bias) return false;
  for (const auto& [name, tensor] : gpt.weights.tensors()) {
    if (absl::EndsWith(name, ".bias") && !IsZero(tensor)) return false;
  }
  return true;
}

const std::vector<Weights::Rule>& Gpt2Prefix() {  // of all but the head
  static const auto* const rules =
      new std::vector<Weights::Rule>{{"lm_head.weight", {"lm_head.weight"}}, {"#", {"transformer.#"}}};
  return *rules;
}

}  // namespace

absl::Status WriteModelFolder(const std::string& folder, const Json& config, const Weights& weights) {
  WEFT_RETURN_IF_ERROR(WriteSafetensors(WeightsPath(folder), weights.tensors(), {{"format", "pt"}}));
  return WriteFile(ConfigPath(folder), {config.dump(2, ' ', false, Json::error_handler_t::replace), "\n"});
}

absl::Status WriteHuggingFace(const std::string& folder, const PublishedGpt& gpt) {
  if (gpt.config.names == GptConfig::Names::kLlama) {
    WEFT_ASSIGN_OR_RETURN(const PublishedGpt halves, WithRotary(gpt, RotaryLayout::kHalves));
    WEFT_ASSIGN_OR_RETURN(const Json json, ToJson(halves.config));
    return WriteModelFolder(folder, json, halves.weights);
  }
  WEFT_ASSIGN_OR_RETURN(PublishedGpt full, WithBiases(gpt));
  WEFT_ASSIGN_OR_RETURN(const Json json, ToJson(full.config));
  WEFT_RETURN_IF_ERROR(full.weights.Apply(TransposeGpt2()));
  WEFT_RETURN_IF_ERROR(full.weights.Apply(Gpt2Prefix()));
  return WriteModelFolder(folder, json, full.weights);
}

absl::Status WriteHuggingFace(const std::string& folder, const PublishedBert& bert) {
  WEFT_ASSIGN_OR_RETURN(Json json, ToJson(bert.config));
  Weights weights = bert.weights;
  const bool masked = weights.Has("cls.predictions."), next = weights.Has("cls.seq_relationship."),
             classifier = weights.Has("classifier.");
  if (classifier && bert.config.classifier_pooling == Pooling::kMean) {
    return absl::InvalidArgumentError(
        "classifier_pooling (--pooling of weft train classify) is mean: Hugging Face's BERT has no such classifier, "
        "and would take it for one of single tokens; wanted cls");
  }
  if (masked || next || classifier) {
    WEFT_RETURN_IF_ERROR(weights.Apply({{"cls.#", {"cls.#"}}, {"classifier.#", {"classifier.#"}}, {"#", {"bert.#"}}}));
    const char* const name = masked && next                      ? "BertForPreTraining"
                             : masked                            ? "BertForMaskedLM"
                             : next                              ? "BertForNextSentencePrediction"
                             : bert.weights.Has("pooler.dense.") ? "BertForSequenceClassification"
                                                                 : "BertForTokenClassification";
    json["architectures"] = {name};
  }
  if (classifier) AddLabels(bert.labels, &json);
  return WriteModelFolder(folder, json, weights);
}

absl::Status WriteNanoGpt(const std::string& folder, const PublishedGpt& gpt) {
  PublishedGpt model = gpt;
  if (HasNoBias(gpt)) {
    WEFT_RETURN_IF_ERROR(model.weights.Apply({{"#.bias", {}}}));
  } else {
    WEFT_ASSIGN_OR_RETURN(model, WithBiases(gpt));
  }
  WEFT_ASSIGN_OR_RETURN(const Json json, ToNanoGptJson(model.config));
  // Its state has the tied table twice.
  const Tensor* const table = model.weights.Find("wte.weight");
  if (table == nullptr) return absl::InvalidArgumentError("the model has no 'wte.weight'");
  const Tensor tied = *table;
  WEFT_RETURN_IF_ERROR(model.weights.Apply(Gpt2Prefix()));
  WEFT_ASSIGN_OR_RETURN(const Tensor head, model.weights.Add("lm_head.weight", tied.type));
  std::copy(tied.data, tied.data + tied.type.bytes(), head.data);
  return WriteModelFolder(folder, json, model.weights);
}

}  // namespace weft
