// This file defines the format of nanoGPT's checkpoints (https://github.com/karpathy/nanoGPT): a folder with model_args
// as config.json and the model's state as model.safetensors.
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "weft/base/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

void ListNanoGpt(Keys& keys, GptConfig& config) {
  keys.Field("n_layer", config.layers);
  keys.Field("n_head", config.heads);
  keys.Field("n_embd", config.width);
  keys.Field("block_size", config.context);
  keys.Field("bias", config.bias);
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("dropout", config.dropout);
}

// Reports whether `config.bias` is false and all biases that the weights have, such as those of norms, are 0.
bool HasNoBias(const PublishedGpt& gpt) {
  if (gpt.config.bias) return false;
  for (const auto& [name, tensor] : gpt.weights.tensors()) {
    const auto is_set = [](float value) { return value != 0; };
    if (absl::EndsWith(name, ".bias") && absl::c_any_of(tensor.span<const float>(), is_set)) return false;
  }
  return true;
}

absl::StatusOr<PublishedModel> Read(const std::string& folder, const Json& json) {
  WEFT_ASSIGN_OR_RETURN(const GptConfig config, Annotate(NanoGptConfigFromJson(json), ConfigPath(folder)));
  // torch.compile adds the prefix "_orig_mod.".
  WEFT_ASSIGN_OR_RETURN(
      Weights weights,
      ReadFolderWeights(folder, {{{"_orig_mod.#", {"#"}}}, {{"transformer.#", {"#"}}}, GptTensorsToDrop()}));
  WEFT_RETURN_IF_ERROR(Annotate(weights.Tie("wte.weight", "lm_head.weight"), weights.path()));
  // Without biases, those of the norms are missing.
  if (!config.bias) WEFT_RETURN_IF_ERROR(AddZeroBiases(ParametersOf(PublishedGpt{config}), &weights));
  WEFT_RETURN_IF_ERROR(weights.Fit(ParametersOf(PublishedGpt{config})));
  return PublishedModel(PublishedGpt{config, std::move(weights)});
}

absl::Status Write(const PublishedGpt& gpt, const std::string& folder, const WriteModelOptions&) {
  PublishedGpt model = gpt;
  if (HasNoBias(gpt)) {
    WEFT_RETURN_IF_ERROR(model.weights.Apply({{"#.bias", {}}}));
  } else {
    WEFT_ASSIGN_OR_RETURN(model, WithBiases(gpt));
  }
  WEFT_ASSIGN_OR_RETURN(const Json json, ToNanoGptJson(model.config));
  // nanoGPT's state has the tied table twice.
  const Tensor* const table = model.weights.Find("wte.weight");
  if (table == nullptr) return InvalidArgument("the model has no 'wte.weight'");
  const Tensor tied = *table;
  WEFT_RETURN_IF_ERROR(model.weights.Apply(Gpt2Prefixes()));
  WEFT_RETURN_IF_ERROR(model.weights.AddCopy("lm_head.weight", tied));
  return WriteModelFolder(folder, json, model.weights);
}

}  // namespace

absl::StatusOr<GptConfig> NanoGptConfigFromJson(const Json& json) {
  const auto nested = json.find("model_args");
  if (nested != json.end() && nested->is_object()) return NanoGptConfigFromJson(*nested);
  KeyReader keys(json);
  GptConfig config = {.vocabulary = 50304, .activation = Activation::kGelu};
  ListNanoGpt(keys, config);
  keys.Choice("activation_function", kActivations, config.activation);
  return Finished(keys, config);
}

absl::StatusOr<Json> ToNanoGptJson(const GptConfig& config) {
  GptConfig plain = config;
  plain.activation = Activation::kGeluTanh;  // so that ToJson checks only what nanoGPT shares with GPT-2
  plain.bias = true;
  WEFT_RETURN_IF_ERROR(ToJson(plain).status());
  WEFT_RETURN_IF_ERROR(CheckExpressible(
      "nanoGPT", {{config.names != GptConfig::Names::kGpt2, "the model is Llama's"},
                  {config.activation != Activation::kGelu, "the activation is another than the exact gelu"},
                  {!config.tied_head, "tied_head is false"},
                  {config.feed_forward != 0 && config.feed_forward != 4 * config.width, "feed_forward is not 4 widths"},
                  {config.norm.epsilon != 1e-5, "the norm's epsilon is not 1e-5"},
                  {config.attention_dropout.value_or(config.dropout) != config.dropout ||
                       config.embedding_dropout.value_or(config.dropout) != config.dropout,
                   "dropouts differ"}}));
  KeyWriter keys;
  GptConfig written = config;
  ListNanoGpt(keys, written);
  return std::move(keys).Finish();
}

constexpr Format kNanoGptFormat = {
    .name = "nanogpt",
    .mark = "block_size (nanoGPT)",
    .recognizes = [](const Json& config) { return config.contains("model_args") || config.contains("block_size"); },
    .families = kOnlyGpt,
    .read = Read,
    .write = OfAnyModel<Write>::Call,
    .files = kFolderFiles,
};

}  // namespace weft
