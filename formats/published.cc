// These helpers name the files of a model's folder, and read and write them.
#include "weft/formats/published.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/formats/config_json.h"
#include "weft/models/layers.h"
#include "weft/models/lora.h"

namespace weft {

std::string ConfigPath(const std::string& folder) { return absl::StrCat(folder, "/", kConfigFile); }

absl::StatusOr<Json> ReadConfig(const std::string& folder) { return ReadJsonFile(ConfigPath(folder)); }

const Json* FindModelType(const Json& config) {
  const auto type = config.find("model_type");
  return type != config.end() && !type->is_null() ? &*type : nullptr;
}

absl::StatusOr<Weights> ReadFolderWeights(const std::string& folder,
                                          const std::vector<std::vector<Weights::Rule>>& rules) {
  WEFT_ASSIGN_OR_RETURN(Weights weights, Weights::Read(folder));
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

std::string Difference(const Hyperparameters& wanted, const Hyperparameters& got, bool training) {
  constexpr std::pair<const char*, const char*> kWords[] = {{"norm is batch-norm", "norms are BatchNorm"},
                                                            {"norm is rms-norm", "norms are RMSNorm"},
                                                            {"rotary is", "positions are rotary"}};
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Hyperparameter& row = wanted[i];
    const bool counts = CheckNeeds({row.flag}, wanted).ok() && (training || !row.rules.may_change);
    if (!counts || row.json() == got[i].json()) continue;
    const Json value = row.json();
    std::string difference =
        absl::StrCat(row.key(), " is ", value.is_number_float() ? absl::StrCat(value.get<double>()) : row.text());
    for (const auto& [beginning, words] : kWords) {
      if (absl::StartsWith(difference, beginning)) difference = words;
    }
    return difference;
  }
  return "";
}

AttentionVariant WithoutDefaults(AttentionVariant attention, int64_t heads, int64_t width) {
  for (int64_t* const size : {&attention.query_width, &attention.key_width, &attention.value_width}) {
    if (*size == width / heads) *size = 0;
  }
  if (attention.key_value_heads == heads) attention.key_value_heads = 0;
  const int64_t key_width = attention.key_width != 0 ? attention.key_width : width / heads;
  if (attention.score_scale == 1 / std::sqrt(static_cast<double>(key_width))) attention.score_scale = 0;
  if (attention.rotary_width == key_width) attention.rotary_width = 0;
  if (attention.rotary_scaling.kind == RotaryScalingKind::kNone) attention.rotary_scaling = {};
  return attention;
}

std::vector<AttentionPattern> ShortestPatterns(std::vector<AttentionPattern> patterns, int64_t layers) {
  if (patterns.empty()) return patterns;
  std::vector<AttentionPattern> all;
  for (int64_t i = 0; i < layers; ++i) all.push_back(patterns[static_cast<size_t>(i) % patterns.size()]);
  size_t period = 1;
  while (period < all.size() &&
         !std::equal(all.begin() + static_cast<std::ptrdiff_t>(period), all.end(), all.begin())) {
    ++period;
  }
  all.resize(std::min(period, all.size()));
  if (all.size() == 1 && all[0] == AttentionPattern()) all.clear();
  return all;
}

std::string UnusualOption(const TransformerConfig& config) {
  if (config.positions == PositionKind::kNone) return "positions are none";
  TransformerConfig given = config, plain = config;
  given.attention = WithoutDefaults(config.attention, config.heads, config.width);
  plain.attention = {};
  plain.norm = {.kind = config.norm.kind, .epsilon = config.norm.epsilon};
  plain.gated = false;
  plain.memory = TransformerConfig::Memory::kLast;
  plain.embedding_norm = false;
  plain.logits_scale = 1;
  if (config.positions == PositionKind::kLearned) plain.first_position = 0;
  plain.ablation = {};
  return Difference(ModelRows(&given), ModelRows(&plain));
}

namespace {

void ListTokenNames(Keys& keys, TokenNames& names) {
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
  keys.NotNull({"decoder_start_token"}, "a token's text");
  WEFT_RETURN_IF_ERROR(keys.Refused());
  return names;
}

void WriteTokenNames(const std::optional<TokenNames>& names, Json* json) {
  if (!names.has_value()) return;
  KeyWriter keys;
  TokenNames copy = *names;
  ListTokenNames(keys, copy);
  json->update(std::move(keys).Finish());
}

std::vector<Weights::Rule> LayerRules(std::initializer_list<absl::Span<const LayerName>> lists) {
  std::vector<Weights::Rule> rules;
  for (const absl::Span<const LayerName> list : lists) {
    for (const auto& [published, own] : list) {
      const std::vector<std::string> layers = absl::StrSplit(own, ',');
      for (const absl::string_view tensor : {".weight", ".bias", kLoraA, kLoraB}) {
        // Adapters of several layers keep their names, because each has a matrix A of its own.
        if (layers.size() > 1 && (tensor == kLoraA || tensor == kLoraB)) continue;
        Weights::Rule& rule = rules.emplace_back(Weights::Rule{.from = absl::StrCat(published, tensor)});
        for (const std::string& each : layers) rule.to.push_back(absl::StrCat(each, tensor));
      }
    }
  }
  return rules;
}

std::vector<Weights::Rule> Gpt2Transposes() {
  std::vector<Weights::Rule> rules;
  for (const char* const layer : {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}) {
    const std::string name = absl::StrCat("h.#.", layer, ".weight");
    rules.push_back({name, {name}, /*transpose=*/true});
  }
  return rules;
}

std::vector<Weights::Rule> Gpt2Prefixes() { return {{"lm_head#", {"lm_head#"}}, {"#", {"transformer.#"}}}; }

int64_t CacheBytes(int64_t layers, const AttentionVariant& head) {
  return layers * head.key_value_heads * (head.key_width + head.value_width) * static_cast<int64_t>(sizeof(float));
}

absl::Status AddZeroBiases(absl::Span<const ParameterSpec> wanted, Weights* weights) {
  for (const ParameterSpec& spec : wanted) {
    if (!absl::EndsWith(spec.name, ".bias") || weights->Find(spec.name) != nullptr) continue;
    WEFT_RETURN_IF_ERROR(weights->Add(spec.name, spec.type).status());
  }
  return absl::OkStatus();
}

absl::Status AddSinusoids(const std::string& name, int64_t rows, const TransformerConfig& config, Weights* weights) {
  const SinusoidLayout layout =
      config.positions == PositionKind::kSinusoidal ? SinusoidLayout::kInterleaved : SinusoidLayout::kHalves;
  WEFT_ASSIGN_OR_RETURN(const Tensor table, weights->Add(name, {kF32, {rows, config.width}}));
  for (int64_t i = 0; i < table.type.shape.elements(); ++i) {
    const int64_t position = i / config.width + config.first_position;
    table.as<float>()[i] = static_cast<float>(Sinusoid(position, i % config.width, config.width, layout));
  }
  return absl::OkStatus();
}

bool HasValues(const Tensor& table, absl::FunctionRef<double(int64_t, int64_t)> value) {
  constexpr double kTolerance = 1e-4;
  const int64_t columns = table.type.shape.dim(1);
  for (int64_t i = 0; i < table.type.shape.elements(); ++i) {
    const double wanted = value(i / columns, i % columns);
    if (!(std::abs(static_cast<double>(table.as<const float>()[i]) - wanted) <= kTolerance)) return false;
  }
  return true;
}

Var TokensInput(Tape* tape, const char* name, int64_t length, int64_t vocabulary) {
  return tape->Input(name, {kI32, {1, length}}, {.below = vocabulary});
}

}  // namespace weft
