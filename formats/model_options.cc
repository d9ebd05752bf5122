// A writer adds the key of each option that the published keys lose. It finds these options by reading back.
#include "weft/formats/model_options.h"

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "absl/algorithm/container.h"
#include "weft/base/status.h"
#include "weft/formats/config_json.h"
#include "weft/models/options.h"
#include "weft/options/hyperparameters.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

template <class Config>
absl::StatusOr<Config> FromPublished(const Json& json) {
  if constexpr (std::is_same_v<Config, GptConfig>) return GptConfigFromJson(json);
  if constexpr (std::is_same_v<Config, BertConfig>) return BertConfigFromJson(json);
  if constexpr (std::is_same_v<Config, TransformerConfig>) return TransformerConfigFromJson(json);
  if constexpr (std::is_same_v<Config, VitConfig>) return VitConfigFromJson(json);
}

// Returns `config` with every option that published keys may lack set to its default.
template <class Config>
Config Plain(Config config) {
  const Config usual;
  config.attention = usual.attention;
  config.positions = usual.positions;
  config.initializer = usual.initializer;
  config.activation_dropout = usual.activation_dropout;
  config.norm.kind = usual.norm.kind;
  config.bias = usual.bias;
  config.gated = usual.gated;
  config.pre_norm = usual.pre_norm;
  config.ablation = usual.ablation;
  if constexpr (std::is_same_v<Config, GptConfig>) config.names = usual.names;
  if constexpr (std::is_same_v<Config, VitConfig>) config.attention_dropout = usual.attention_dropout;
  return config;
}
// Returns the keys of `json` that are those of `rows` and not of `published`, without nulls. `rest`: receives the
// others.
Json OwnKeys(const Json& json, const Hyperparameters& rows, const Json& published, Json* rest) {
  Json own = Json::object();
  for (const auto& [key, value] : json.items()) {
    const bool is_row = absl::c_any_of(rows, [&, &name = key](const Hyperparameter& row) { return row.key() == name; });
    if (!is_row || published.contains(key)) {
      (*rest)[key] = value;
    } else if (!value.is_null()) {
      own[key] = value;
    }
  }
  return own;
}

}  // namespace

GptConfig CharacterGpt() { return {.vocabulary = 0, .context = 64, .layers = 4, .heads = 4, .width = 128}; }

template <class Config>
absl::Status ReadModelConfig(const Json& json, Config* config) {
  if (!json.is_object()) return InvalidArgument("not a JSON object");
  if (!json.contains("model_type")) return SetFromJson(json, ModelRows(config));
  WEFT_ASSIGN_OR_RETURN(const Json usual, ToJson(Config()));
  Json published = Json::object();
  const Json own = OwnKeys(json, ModelRows(config), usual, &published);
  WEFT_ASSIGN_OR_RETURN(*config, FromPublished<Config>(published));
  return SetFromJson(own, ModelRows(config));
}

template <class Config>
absl::StatusOr<Json> WriteModelConfig(const Config& config) {
  absl::StatusOr<Json> json = ToJson(config);
  if (!json.ok()) json = ToJson(Plain(config));
  if (!json.ok()) return json.status();
  Config copy = config, read;
  WEFT_RETURN_IF_ERROR(ReadModelConfig(*json, &read));
  if (copy.feed_forward == 0) copy.feed_forward = read.feed_forward;  // writers fill in the default width
  const Hyperparameters wanted = ModelRows(&copy), got = ModelRows(&read);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (const Json value = wanted[i].json(); !value.is_null() && value != got[i].json())
      (*json)[wanted[i].key()] = value;
  }
  return json;
}

template <class Config>
absl::Status ReadRunModel(const Json& run, Config* config) {
  if (const auto model = run.find("model"); model != run.end() && model->is_object()) {
    WEFT_RETURN_IF_ERROR(Annotate(ReadModelConfig(*model, config), "model"));
  }
  Json others;
  return SetFromJson(OwnKeys(run, ModelRows(config), Json::object(), &others), ModelRows(config));
}

template absl::Status ReadModelConfig(const Json&, GptConfig*);
template absl::Status ReadModelConfig(const Json&, BertConfig*);
template absl::Status ReadModelConfig(const Json&, TransformerConfig*);
template absl::Status ReadModelConfig(const Json&, VitConfig*);
template absl::StatusOr<Json> WriteModelConfig(const GptConfig&);
template absl::StatusOr<Json> WriteModelConfig(const BertConfig&);
template absl::StatusOr<Json> WriteModelConfig(const TransformerConfig&);
template absl::StatusOr<Json> WriteModelConfig(const VitConfig&);
template absl::Status ReadRunModel(const Json&, GptConfig*);
template absl::Status ReadRunModel(const Json&, BertConfig*);
template absl::Status ReadRunModel(const Json&, TransformerConfig*);
template absl::Status ReadRunModel(const Json&, VitConfig*);

}  // namespace weft
