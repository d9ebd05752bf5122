// These functions read and write the configurations of models, in the keys of published config.json files.
//
//   WEFT_ASSIGN_OR_RETURN(const GptConfig config, GptConfigFromJson(json));   // {"model_type": "gpt2", "n_layer": ...}
//   WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ToJson(config));
//
// Readers know every key that Hugging Face's classes write. A key is used, accepted because it changes nothing, or
// refused with InvalidArgument "KEY is VALUE, which is not supported; wanted ...". An unknown key is also refused,
// unless its value (null, false, empty) means that it is not used. Only CTranslate2's reader ignores unknown keys. A
// missing key has the default of the original class, such as Hugging Face's GPT2Config. The result passes Validate. If
// the keys can't express a configuration, writers return InvalidArgument.
#ifndef WEFT_FORMATS_CONFIG_JSON_H_
#define WEFT_FORMATS_CONFIG_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"
#include "weft/models/transformer.h"
#include "weft/models/vit.h"
#include "weft/text/data/text_task.h"

namespace weft {

// Read and write the model_types gpt2, llama and mistral; minGPT's gpt-nano is only read. A config with Names::kGpt2 is
// written as gpt2. A config with Names::kLlama is written as llama or, if it has a window, as mistral.
absl::StatusOr<GptConfig> GptConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const GptConfig& config);
// Read and write nanoGPT's model_args: n_layer, n_head, n_embd, block_size, bias, vocab_size and dropout. The reader
// also accepts them under a key "model_args". The activation is exact GELU, as in nn.GELU, unless a key
// "activation_function" names another. For nanoGPT's first versions, set this key to "gelu_new".
absl::StatusOr<GptConfig> NanoGptConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToNanoGptJson(const GptConfig& config);

// For the model_type bert.
absl::StatusOr<BertConfig> BertConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const BertConfig& config);
// Returns the names of a classifier's classes 0, 1, ... from the key id2label or, if that is missing or null,
// UsualLabels of num_labels; without both keys, none. Returns InvalidArgument if the keys disagree.
absl::StatusOr<std::vector<std::string>> LabelsFromJson(const nlohmann::ordered_json& json);
// Returns "LABEL_0", "LABEL_1" and so on, the names of `count` classes without names.
std::vector<std::string> UsualLabels(int64_t count);
// Sets the keys id2label and label2id.
void AddLabels(const std::vector<std::string>& labels, nlohmann::ordered_json* json);
// Reads problem_type as the pipelines of Hugging Face do for a classifier of `labels` labels.
absl::StatusOr<LabelScores> LabelScoresFromJson(const nlohmann::ordered_json& json, size_t labels);
// Sets problem_type, unless it is the default.
void AddLabelScores(LabelScores scores, nlohmann::ordered_json* json);

// Read and write the model_type vit. The number of classes is the number of names in id2label or, without names, 2 as
// in Hugging Face.
absl::StatusOr<VitConfig> VitConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const VitConfig& config);
// Returns the names of the classes: those of id2label or, without this key, LABEL_0 and LABEL_1.
absl::StatusOr<std::vector<std::string>> VitLabelsFromJson(const nlohmann::ordered_json& json);
// Changes `json`, which describes a classifier, to describe a ViT of `task`. Hugging Face has no class for kOrder.
void SetVitTask(VitTask task, nlohmann::ordered_json* json);

// Read and write this project's own model_type transformer. The keys are those of Hugging Face's Marian and BART.
// Fields of TransformerConfig that Marian and BART lack have keys of their own.
absl::StatusOr<TransformerConfig> TransformerConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const TransformerConfig& config);
// Reads the configuration of a CTranslate2 model: d_model, num_heads, ffn_dim, encoder_layers, ... The result is a
// model as OpenNMT trains it: pre-norm, sinusoids in halves from position 1, a separate output layer with a bias.
// source_has_bos_eos must be false. All other keys are ignored, such as bos_id and eos_id, which belong to the
// vocabulary.
absl::StatusOr<TransformerConfig> CTranslate2ConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToCTranslate2Json(const TransformerConfig& config);

}  // namespace weft

#endif  // WEFT_FORMATS_CONFIG_JSON_H_
