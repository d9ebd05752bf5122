// These functions read and write the configurations of models, in the keys of published config.json files.
//
//   WEFT_ASSIGN_OR_RETURN(const auto config, ConfigFromJson<GptConfig>(json));   // {"model_type": "gpt2", ...}
//   WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ToJson(config));
//
// Readers know every key that Hugging Face's classes write. A key is used, accepted because it changes nothing, or
// refused with InvalidArgument "KEY is VALUE, which is not supported; wanted ...". An unknown key is also refused,
// unless its value (null, false, empty) means that it is not used. Only CTranslate2's reader ignores unknown keys. A
// missing key has the default of the original class, such as Hugging Face's GPT2Config. The result passes Validate. If
// the keys can't express a configuration, writers return InvalidArgument.
//
// ReadModelConfig and WriteModelConfig take all options of a model as one object. It has the keys of published models
// and, for what these can't express, the keys of models/options.h:
//
//   {"model_type": "gpt2", "n_layer": 4, ..., "window": "8,0", "gated": true}
//
//   GptConfig config;
//   WEFT_RETURN_IF_ERROR(ReadModelConfig(json, &config));
//   const absl::StatusOr<nlohmann::ordered_json> same = WriteModelConfig(config);
#ifndef WEFT_FORMATS_CONFIG_JSON_H_
#define WEFT_FORMATS_CONFIG_JSON_H_

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/base/status.h"
#include "weft/models/options.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/data/text_task.h"

namespace weft {

// Reads the keys of published models alone. Config: the configuration of a family.
template <class Config>
absl::StatusOr<Config> ConfigFromJson(const nlohmann::ordered_json& json);

// Read and write the model_types of DecoderFamilies (decoders/decoder.h); minGPT's gpt-nano is only read. A config is
// written as the first of these types that can express it.
template <>
absl::StatusOr<GptConfig> ConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const GptConfig& config);
// Read and write nanoGPT's model_args: n_layer, n_head, n_embd, block_size, bias, vocab_size and dropout. The reader
// also accepts them under a key "model_args". The activation is exact GELU, as in nn.GELU, unless a key
// "activation_function" names another. For nanoGPT's first versions, set this key to "gelu_new".
absl::StatusOr<GptConfig> NanoGptConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToNanoGptJson(const GptConfig& config);

// For the model_type bert.
template <>
absl::StatusOr<BertConfig> ConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const BertConfig& config);
// Returns the names of a classifier's classes 0, 1, ... from the key id2label or, if that is missing or null,
// UsualLabels of num_labels; without both keys, none. Returns InvalidArgument if the keys disagree.
absl::StatusOr<std::vector<std::string>> LabelsFromJson(const nlohmann::ordered_json& json);
// Returns "LABEL_0", "LABEL_1" and so on, the names of `count` classes without names.
std::vector<std::string> UsualLabels(int64_t count);
// Sets the keys id2label and label2id.
void AddLabels(const std::vector<std::string>& labels, nlohmann::ordered_json* json);
// Returns the name of a class of Hugging Face for `config`'s type: "RobertaForMaskedLM" for "ForMaskedLM".
std::string ClassName(const BertConfig& config, absl::string_view suffix);
// Reads problem_type as the pipelines of Hugging Face do for a classifier of `labels` labels.
absl::StatusOr<LabelScores> LabelScoresFromJson(const nlohmann::ordered_json& json, size_t labels);
// Sets problem_type, unless it is the default.
void AddLabelScores(LabelScores scores, nlohmann::ordered_json* json);

// Read and write the model_types vit and deit. The number of classes is the number of names in id2label or, without
// names, 2 as in Hugging Face.
template <>
absl::StatusOr<VitConfig> ConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const VitConfig& config);
// Changes `json`, which describes a classifier, to describe a ViT of `task`. Hugging Face has no class for kOrder.
void SetVitTask(VitTask task, nlohmann::ordered_json* json);

// Read and write this project's own model_type transformer. The keys are those of Hugging Face's Marian and BART.
// Fields of TransformerConfig that Marian and BART lack have keys of their own.
template <>
absl::StatusOr<TransformerConfig> ConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const TransformerConfig& config);
// Reads the configuration of a CTranslate2 model: d_model, num_heads, ffn_dim, encoder_layers, ... The result is a
// model as OpenNMT trains it: pre-norm, sinusoids in halves from position 1, a separate output layer with a bias.
// source_has_bos_eos must be false. All other keys are ignored, such as bos_id and eos_id, which belong to the
// vocabulary.
absl::StatusOr<TransformerConfig> CTranslate2ConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToCTranslate2Json(const TransformerConfig& config);

// Returns the keys of `json` that are those of `rows` and not of `published`, without nulls. `rest`: receives the
// others.
nlohmann::ordered_json OwnKeys(const nlohmann::ordered_json& json, const Hyperparameters& rows,
                               const nlohmann::ordered_json& published, nlohmann::ordered_json* rest);

// Sets `config`, of any family, from `json`. With a "model_type", `json` describes a whole model, as published. Without
// one, it has keys of models/options.h only, and other options keep their values. Returns InvalidArgument for an
// unknown key, with the nearest known key, or for a wrong value.
template <class Config>
absl::Status ReadModelConfig(const nlohmann::ordered_json& json, Config* config) {
  if (!json.is_object()) return InvalidArgument("not a JSON object");
  if (!json.contains("model_type")) return SetFromJson(json, ModelRows(config));
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json usual, ToJson(Config()));
  nlohmann::ordered_json published = nlohmann::ordered_json::object();
  const nlohmann::ordered_json own = OwnKeys(json, ModelRows(config), usual, &published);
  WEFT_ASSIGN_OR_RETURN(*config, ConfigFromJson<Config>(published));
  return SetFromJson(own, ModelRows(config));
}

// Returns `config` with every option that published keys may lack set to its default.
template <class Config>
Config Plain(Config config) {
  Config usual;
  if constexpr (std::is_same_v<Config, BertConfig>) {  // a type's own form, such as rotary positions
    usual = ConfigFromJson<Config>({{"model_type", config.model_type}}).value_or(usual);
  }
  config.attention = usual.attention;
  config.positions = usual.positions;
  config.initializer = usual.initializer;
  config.zero_output = usual.zero_output;
  config.activation_dropout = usual.activation_dropout;
  usual.norm.epsilon = config.norm.epsilon;
  config.norm = usual.norm;
  config.bias = usual.bias;
  config.gated = usual.gated;
  config.pre_norm = usual.pre_norm;
  config.ablation = usual.ablation;
  if constexpr (std::is_same_v<Config, GptConfig>) {
    config.names = usual.names;
    config.head_bias = usual.head_bias;
    config.mixture = usual.mixture;
    config.balance_loss = usual.balance_loss;
    config.embedding_norm = usual.embedding_norm;
    config.value_embeddings = usual.value_embeddings;
    config.skip_connections = usual.skip_connections;
    config.first_position = usual.first_position;
    config.result_norm = usual.result_norm;
    config.residual = usual.residual;
    config.embedding_scale = config.residual_scale = config.logits_scale = 1;
    config.logits_cap = usual.logits_cap;
  }
  if constexpr (std::is_same_v<Config, TransformerConfig>) {
    config.embedding_norm = usual.embedding_norm;
    config.logits_scale = usual.logits_scale;
    config.shared_distance_bias = usual.shared_distance_bias;
  }
  if constexpr (std::is_same_v<Config, VitConfig>) config.attention_dropout = usual.attention_dropout;
  return config;
}

// Returns `config` as a whole model. Adds the key of each option that the published keys lose, which it finds by
// reading back.
template <class Config>
absl::StatusOr<nlohmann::ordered_json> WriteModelConfig(const Config& config) {
  absl::StatusOr<nlohmann::ordered_json> json = ToJson(config);
  if (!json.ok()) json = ToJson(Plain(config));
  if (!json.ok()) return json.status();
  Config copy = config, read;
  WEFT_RETURN_IF_ERROR(ReadModelConfig(*json, &read));
  if (copy.feed_forward == 0) copy.feed_forward = read.feed_forward;  // writers fill in the default width
  const Hyperparameters wanted = ModelRows(&copy), got = ModelRows(&read);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const nlohmann::ordered_json value = wanted[i].json();
    if (!value.is_null() && value != got[i].json()) (*json)[wanted[i].key()] = value;
  }
  return json;
}

// Sets `config` from the config.json of a training run. The run's options are keys at the top level; "model", if it is
// there, describes the whole model.
template <class Config>
absl::Status ReadRunModel(const nlohmann::ordered_json& run, Config* config) {
  if (const auto model = run.find("model"); model != run.end() && model->is_object()) {
    WEFT_RETURN_IF_ERROR(Annotate(ReadModelConfig(*model, config), "model"));
  }
  nlohmann::ordered_json others;
  return SetFromJson(OwnKeys(run, ModelRows(config), nlohmann::ordered_json::object(), &others), ModelRows(config));
}

// The same, but a GPT gets the context of "model", which is longer than the option if shorter windows were trained.
template <class Config>
absl::Status ReadWholeRunModel(const nlohmann::ordered_json& run, Config* config) {
  WEFT_RETURN_IF_ERROR(ReadRunModel(run, config));
  if constexpr (std::is_same_v<Config, GptConfig>) {
    Config whole = *config;
    if (const auto model = run.find("model"); model != run.end() && model->is_object()) {
      WEFT_RETURN_IF_ERROR(Annotate(ReadModelConfig(*model, &whole), "model"));
    }
    config->context = std::max(config->context, whole.context);
  }
  return absl::OkStatus();
}

// The GPT that `weft train gpt` trains without options: a character model of 0.8 million parameters. The vocabulary is
// 0 until a tokenizer gives its size.
inline GptConfig CharacterGpt() { return {.vocabulary = 0, .context = 64, .layers = 4, .heads = 4, .width = 128}; }

}  // namespace weft

#endif  // WEFT_FORMATS_CONFIG_JSON_H_
