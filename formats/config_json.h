// Configurations as the field's config.json have them, both ways.
//
//   WEFT_ASSIGN_OR_RETURN(const GptConfig config, GptConfigFromJson(json));   // {"model_type": "gpt2", "n_layer": ...}
//   WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ToJson(config));
//
// Reading knows each key that Hugging Face's classes write: it is used, or known to change nothing, or refused with
// InvalidArgument "KEY is VALUE, which is not supported; wanted ...". A key of none of these is refused, too, unless
// its value says that it is not used. What is missing has the default of those classes, and the result is valid
// (Validate). Writing refuses, with InvalidArgument, a configuration that the keys can't express.
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

namespace weft {

// Of model_type gpt2, llama or mistral; minGPT's gpt-nano is read, too. Names::kGpt2 is written as gpt2, kLlama as
// llama or, with a window, as mistral.
absl::StatusOr<GptConfig> GptConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const GptConfig& config);
// nanoGPT's model_args, by themselves or under that key: n_layer, n_head, n_embd, block_size, bias, vocab_size,
// dropout. GELU is exact, as nn.GELU, unless "activation_function" is "gelu_new", for what the first versions trained.
absl::StatusOr<GptConfig> NanoGptConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToNanoGptJson(const GptConfig& config);

// Of model_type bert.
absl::StatusOr<BertConfig> BertConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const BertConfig& config);
// The names of a classifier's classes, id2label: those of 0, 1, ...; none where there is no such key.
absl::StatusOr<std::vector<std::string>> LabelsFromJson(const nlohmann::ordered_json& json);
void AddLabels(const std::vector<std::string>& labels, nlohmann::ordered_json* json);

// Of model_type vit. The classes are those of id2label; where no such key is, two, as Hugging Face has it.
absl::StatusOr<VitConfig> VitConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const VitConfig& config);
// The names of its classes: where there is no id2label, LABEL_0 and LABEL_1.
absl::StatusOr<std::vector<std::string>> VitLabelsFromJson(const nlohmann::ordered_json& json);

// Of model_type transformer, our own: the keys of Hugging Face's Marian and BART, and for what those don't have, the
// names of TransformerConfig.
absl::StatusOr<TransformerConfig> TransformerConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToJson(const TransformerConfig& config);
// A description of a model of CTranslate2: d_model, num_heads, ffn_dim, encoder_layers, ...; the form is the one that
// OpenNMT trains: pre-norm, sinusoids in halves from position 1, a separate output layer with a bias. Its bos_id and
// eos_id are the vocabulary's matter.
absl::StatusOr<TransformerConfig> CTranslate2ConfigFromJson(const nlohmann::ordered_json& json);
absl::StatusOr<nlohmann::ordered_json> ToCTranslate2Json(const TransformerConfig& config);

}  // namespace weft

#endif  // WEFT_FORMATS_CONFIG_JSON_H_
