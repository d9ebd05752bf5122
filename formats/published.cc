// These helpers name the files of a model's folder, and read and write them.
#include "weft/formats/published.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/write_weights.h"

namespace weft {

using Json = nlohmann::ordered_json;

std::string ConfigPath(const std::string& folder) { return absl::StrCat(folder, "/", kConfigFile); }
std::string WeightsPath(const std::string& folder) { return folder + "/model.safetensors"; }

absl::StatusOr<Json> ReadConfig(const std::string& folder) { return ReadJsonFile(ConfigPath(folder)); }

const Json* FindModelType(const Json& config) {
  const auto type = config.find("model_type");
  return type != config.end() && !type->is_null() ? &*type : nullptr;
}

absl::StatusOr<Weights> ReadFolderWeights(const std::string& folder,
                                          const std::vector<std::vector<Weights::Rule>>& rules) {
  WEFT_ASSIGN_OR_RETURN(Weights weights, Weights::ReadSafetensors(folder));
  for (const std::vector<Weights::Rule>& list : rules) {
    WEFT_RETURN_IF_ERROR(Annotate(weights.Apply(list), weights.path()));
  }
  return weights;
}

absl::Status WriteJson(const std::string& path, const Json& json) {
  return WriteFile(path, {json.dump(2, ' ', false, Json::error_handler_t::replace), "\n"});
}

absl::Status WriteModelFolder(const std::string& folder, const Json& config, const Weights& weights) {
  WEFT_RETURN_IF_ERROR(WriteSafetensors(WeightsPath(folder), weights.tensors(), {{"format", "pt"}}));
  return WriteJson(ConfigPath(folder), config);
}

std::string UnusualOption(const TransformerConfig& config) {
  const AttentionVariant& attention = config.attention;
  const int64_t width = config.width / config.heads;
  for (const auto& [name, value] : {std::pair{"query_width", attention.query_width},
                                    {"key_width", attention.key_width},
                                    {"value_width", attention.value_width}}) {
    if (value != 0 && value != width) return absl::StrCat(name, " is ", value, ", not width / heads");
  }
  if (attention.key_value_heads != 0 && attention.key_value_heads != config.heads) {
    return absl::StrCat("key_value_heads is ", attention.key_value_heads, ", not heads");
  }
  if (attention.score != ScoreFunction::kDot) return "score is additive";
  if (attention.merge != HeadMerge::kProject) return "merge is average";
  if (!attention.patterns.empty()) return "patterns are set";
  if (attention.distance_bias == DistanceBias::kAlibi) return "distance_bias is alibi";
  if (attention.distance_bias == DistanceBias::kBuckets) return "distance_bias is buckets";
  if (attention.soft_cap != 0) return absl::StrCat("soft_cap is ", attention.soft_cap);
  if (attention.rotary.has_value()) return "positions are rotary";
  if (config.positions == PositionKind::kNone) return "positions are none";
  if (config.gated) return "gated is true";
  if (config.ablation != Ablation()) return absl::StrCat("ablate is ", ToText(config.ablation));
  if (config.memory != TransformerConfig::Memory::kLast) return "memory is same-layer";
  return "";
}

namespace {

template <class Keys, class Names>
void ListTokenNames(Keys& keys, Names& names) {
  keys.Field("unk_token", names.unknown);
  keys.Field("bos_token", names.begin);
  keys.Field("eos_token", names.end);
  keys.Field("decoder_start_token", names.start);
  keys.Field("add_source_bos", names.source_begin);
  keys.Field("add_source_eos", names.source_end);
}

}  // namespace

absl::StatusOr<std::optional<TokenNames>> ReadTokenNames(const Json& json) {
  if (absl::c_none_of(kTokenNameKeys, [&](const char* key) { return json.contains(key); })) return std::nullopt;
  KeyReader keys(json);
  TokenNames names;
  ListTokenNames(keys, names);
  if (keys.IsNull("decoder_start_token")) keys.Refuse("decoder_start_token", "a token's text");
  WEFT_RETURN_IF_ERROR(keys.Refused());
  return names;
}

void WriteTokenNames(const std::optional<TokenNames>& names, Json* json) {
  if (!names.has_value()) return;
  KeyWriter keys;
  ListTokenNames(keys, *names);
  json->update(std::move(keys).Finish());
}

std::vector<ParameterSpec> WeightsOn(const Tape& tape) {
  std::vector<ParameterSpec> weights;
  for (const ParameterSpec& spec : tape.program().parameters) {
    if (spec.kind == ParameterKind::kWeight || spec.kind == ParameterKind::kStatistic) weights.push_back(spec);
  }
  return weights;
}

Var OneToken(Tape* tape, const char* name, int64_t vocabulary) {
  return tape->Input(name, {kI32, {1, 1}}, {.below = vocabulary});
}

}  // namespace weft
