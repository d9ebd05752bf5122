#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/formats/config_keys.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<const char*, Pooling> kPoolings[] = {{"cls", Pooling::kFirst}, {"mean", Pooling::kMean}};

template <class Keys, class Config>
void ListBert(Keys& keys, Config& config) {
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("hidden_size", config.width);
  keys.Field("num_hidden_layers", config.layers);
  keys.Field("num_attention_heads", config.heads);
  keys.Field("intermediate_size", config.feed_forward);
  keys.Choice("hidden_act", kActivations, config.activation);
  keys.Field("hidden_dropout_prob", config.dropout);
  keys.Field("attention_probs_dropout_prob", config.attention_dropout, config.dropout);
  keys.Field("max_position_embeddings", config.context);
  keys.Field("type_vocab_size", config.segments);
  keys.Field("layer_norm_eps", config.norm_epsilon);
  keys.Only("position_embedding_type", "absolute");
  keys.Only("is_decoder", false);
  keys.Only("tie_word_embeddings", true);
  // Of Google's own checkpoints; none of their code reads them.
  keys.Harmless({"directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                 "pooler_size_per_head", "pooler_type"});
}

}  // namespace

absl::StatusOr<BertConfig> BertConfigFromJson(const Json& json) {
  KeyReader keys(json);
  BertConfig config = {.feed_forward = 3072};
  config.attention_dropout = 0.1;
  keys.Only("model_type", "bert");
  ListBert(keys, config);
  if (keys.Find("classifier_dropout") != nullptr) {
    keys.Field("classifier_dropout", config.classifier_dropout, config.dropout);
  }
  if (config.attention_dropout == config.dropout) config.attention_dropout.reset();
  keys.Choice("classifier_pooling", Choices<Pooling>(kPoolings), config.classifier_pooling);
  ReadUsualKeys(keys);
  WEFT_RETURN_IF_ERROR(keys.Finish());
  WEFT_RETURN_IF_ERROR(Validate(config));
  return config;
}

absl::StatusOr<Json> ToJson(const BertConfig& config) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  WEFT_RETURN_IF_ERROR(CheckExpressible("bert", {{config.dtype != kF32, "dtype is f64"}}));
  KeyWriter keys;
  keys.Field("model_type", "bert");
  keys.Field("architectures", std::vector<std::string>{"BertModel"});
  BertConfig full = config;
  if (full.feed_forward == 0) full.feed_forward = 4 * full.width;
  ListBert(keys, full);
  keys.Field("position_embedding_type", "absolute");
  if (config.classifier_pooling != Pooling::kFirst) {  // a key of newer encoders than BERT
    keys.Choice("classifier_pooling", Choices<Pooling>(kPoolings), config.classifier_pooling);
  }
  if (config.classifier_dropout) keys.Field("classifier_dropout", *config.classifier_dropout);
  return std::move(keys).Finish();
}

absl::StatusOr<std::vector<std::string>> LabelsFromJson(const Json& json) {
  const auto found = json.find("id2label");
  if (found == json.end() || found->is_null()) return std::vector<std::string>();
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("id2label ", what));
  };
  if (!found->is_object()) return error("is no object");
  std::vector<std::string> labels(found->size());
  std::vector<bool> given(labels.size());
  for (const auto& [key, label] : found->items()) {
    uint32_t id = 0;
    if (!absl::SimpleAtoi(key, &id) || id >= labels.size() || given[id]) {
      return error(absl::StrCat("has the key '", key, "', wanted 0 .. ", labels.size() - 1, ", each once"));
    }
    if (!label.is_string()) return error(absl::StrCat("of ", key, " is no text"));
    labels[id] = label.get<std::string>();
    given[id] = true;
  }
  return labels;
}

void AddLabels(const std::vector<std::string>& labels, Json* json) {
  Json names = Json::object(), ids = Json::object();
  for (size_t i = 0; i < labels.size(); ++i) {
    names[absl::StrCat(i)] = labels[i];
    ids[labels[i]] = i;
  }
  (*json)["id2label"] = std::move(names);
  (*json)["label2id"] = std::move(ids);
}

}  // namespace weft
