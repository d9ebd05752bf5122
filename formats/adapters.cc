// adapter_config.json names layers in full or by the ends of their names.
#include "weft/formats/adapters.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/config_keys.h"
#include "weft/models/lora.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
// Reads an object of numbers above 0 by the names of layers. PEFT takes the names for regular expressions; only those
// without special characters, except a ^ that begins a whole name, are supported.
void ReadPattern(const char* key, KeyReader& keys, AdapterConfig::Pattern& pattern) {
  const Json* const json = keys.Find(key);
  if (json == nullptr) return;
  for (const auto& [name, value] : json->items()) {
    if (!value.is_number() || value <= 0 || name.find_first_of("$*+?()[]{}|\\") != std::string::npos) {
      return keys.Refuse(key, "numbers above 0 by names of layers without special characters");
    }
    pattern.emplace_back(name, value.get<double>());
  }
}

// Returns the value of the first name in `pattern` that is `layer` or its end, or `usual`.
double ValueOf(const AdapterConfig::Pattern& pattern, absl::string_view layer, double usual) {
  for (const auto& [name, value] : pattern) {
    absl::string_view text = name;
    const bool whole = absl::ConsumePrefix(&text, "^");
    if (layer == text || (!whole && absl::EndsWith(layer, absl::StrCat(".", text)))) return value;
  }
  return usual;
}

// Refuses initial adapters that PEFT subtracts from the base model, because the file has the difference to another
// base.
void CheckInitial(KeyReader& keys) {
  const Json* const json = keys.Find("init_lora_weights");
  if (json == nullptr || json->is_boolean()) return;
  for (const char* const unchanged : {"gaussian", "eva", "orthogonal", "mica", "lora_ga"}) {
    if (*json == unchanged) return;
  }
  keys.Refuse("init_lora_weights",
              "an adapter of the unchanged base model, which PEFT's save_pretrained writes if it gets "
              "path_initial_model_for_weight_conversion");
}

// Reads a list of values. `single`: whether one value stands for a list. Otherwise it is a regular expression or
// "all-linear", which is not checked against the file's tensors, and `list` stays unset.
template <class T>
void ReadList(const char* key, bool single, KeyReader& keys, std::optional<std::vector<T>>& list) {
  const Json* const json = keys.Find(key);
  if (json == nullptr || json->empty() || (!json->is_array() && !single)) return;
  list.emplace();
  for (const Json& each : json->is_array() ? *json : Json::array({*json})) {
    if (std::is_same_v<T, std::string> ? !each.is_string() : !WholeNumber(each)) {
      return keys.Refuse(key, std::is_same_v<T, std::string> ? "a list of texts" : "a list of whole numbers");
    }
    list->push_back(each.get<T>());
  }
}

absl::StatusOr<AdapterConfig> FromJson(const std::string& folder, const Json& json) {
  KeyReader keys(json);
  AdapterConfig config;
  if (json.value("peft_type", Json()) != "LORA") keys.Refuse("peft_type", "LORA");
  keys.Field("r", config.rank);
  keys.Field("lora_alpha", config.alpha);
  if (config.rank <= 0) keys.Refuse("r", "a number above 0");
  keys.Field("use_rslora", config.rank_stabilized);
  ReadPattern("rank_pattern", keys, config.rank_pattern);
  ReadPattern("alpha_pattern", keys, config.alpha_pattern);
  CheckInitial(keys);
  if (const Json* const saved = keys.Find("modules_to_save"); saved != nullptr) {
    for (const Json& name : *saved) {
      if (!name.is_string()) keys.Refuse("modules_to_save", "names of layers");
      if (name.is_string()) config.saved.push_back(name.get<std::string>());
    }
  }
  std::string task;
  keys.Field("task_type", task);
  if (task == "SEQ_CLS" || task == "TOKEN_CLS") config.saved.insert(config.saved.end(), {"classifier", "score"});
  // In use, each of these changes what the adapter computes.
  for (const char* const key :
       {"alora_invocation_tokens", "arrow_config", "kasa_config", "layer_replication", "lora_bias", "monteclora_config",
        "target_parameters", "trainable_token_indices", "use_bdlora", "use_dora", "use_qalora", "velora_config"}) {
    const Json* const value = keys.Find(key);
    if (value != nullptr && *value != false && !value->empty()) keys.Refuse(key, "plain LoRA without it");
  }
  ReadList("target_modules", /*single=*/false, keys, config.targets);
  ReadList("exclude_modules", /*single=*/false, keys, config.excluded);
  ReadList("layers_to_transform", /*single=*/true, keys, config.layer_numbers);
  ReadList("layers_pattern", /*single=*/true, keys, config.blocks);
  // The file's tensors tell which layers have biases, and have both tensors if two layers are tied.
  keys.Harmless({"bias", "ensure_weight_tying", "fan_in_fan_out"});
  // These concern training, initial values that the file replaces, or the way in which PEFT finds and runs the model.
  keys.Harmless({"lora_dropout", "inference_mode", "eva_config", "corda_config", "loftq_config", "lora_ga_config",
                 "qalora_group_size", "megatron_config", "megatron_core", "runtime_config", "auto_mapping",
                 "peft_version", "revision", "peft_type"});
  const Json* const base = keys.Find("base_model_name_or_path");
  WEFT_RETURN_IF_ERROR(keys.Finish());
  if (base != nullptr && base->is_string() && !base->get<std::string>().empty()) {
    config.base = base->get<std::string>();
    if (Exists(config.base)) return config;
    config.base = (fs::path(folder) / config.base).string();
    if (Exists(config.base)) return config;
  }
  return InvalidArgument("base_model_name_or_path is ", base == nullptr ? "missing" : base->dump(),
                         ", wanted the path of the base model's folder");
}

// Sets `to` to weight + scale · b · a, in doubles that are rounded once.
void Merge(const Tensor& weight, const Tensor& a, const Tensor& b, double scale, const Tensor& to) {
  const int64_t out = weight.type.shape.dim(0), in = weight.type.shape.dim(1), rank = a.type.shape.dim(0);
  std::vector<double> row(static_cast<size_t>(in));
  for (int64_t i = 0; i < out; ++i) {
    row.assign(row.size(), 0);
    for (int64_t k = 0; k < rank; ++k) {
      const double factor = b.as<float>()[i * rank + k];
      for (int64_t j = 0; j < in; ++j) row[static_cast<size_t>(j)] += factor * a.as<float>()[k * in + j];
    }
    for (int64_t j = 0; j < in; ++j) {
      to.as<float>()[i * in + j] =
          static_cast<float>(weight.as<float>()[i * in + j] + scale * row[static_cast<size_t>(j)]);
    }
  }
}

bool Fit(const TensorType& weight, const TensorType& a, const TensorType& b) {
  for (const TensorType* const type : {&weight, &a, &b}) {
    if (type->dtype != kF32 || type->shape.rank() != 2) return false;
  }
  return a.shape.dim(1) == weight.shape.dim(1) && b.shape.dim(0) == weight.shape.dim(0) &&
         a.shape.dim(0) == b.shape.dim(1);
}

}  // namespace

int64_t AdapterConfig::RankOf(absl::string_view layer) const {
  return static_cast<int64_t>(ValueOf(rank_pattern, layer, static_cast<double>(rank)));
}

double AdapterConfig::ScaleOf(absl::string_view layer) const {
  const auto r = static_cast<double>(RankOf(layer));
  return ValueOf(alpha_pattern, layer, alpha) / (rank_stabilized ? std::sqrt(r) : r);
}

bool AdapterConfig::Saves(absl::string_view layer) const {
  for (size_t end = layer.size(); end != layer.npos; end = layer.substr(0, end).rfind('.')) {
    const absl::string_view module = layer.substr(0, end);
    if (absl::c_any_of(saved, [&](const std::string& name) { return absl::EndsWith(module, name); })) return true;
  }
  return false;
}

bool AdapterConfig::Targets(absl::string_view layer) const {
  const auto ends = [&](const std::string& name) {
    return layer == name || absl::EndsWith(layer, absl::StrCat(".", name));
  };
  if (excluded && absl::c_any_of(*excluded, ends)) return false;
  if (!targets || absl::c_linear_search(*targets, layer)) return true;
  if (!absl::c_any_of(*targets, ends)) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(layer, '.');
  for (size_t i = 2; layer_numbers && i + 1 < parts.size(); ++i) {
    int64_t number = 0;
    const bool named = !blocks || absl::c_linear_search(*blocks, parts[i - 1]);
    if (named && absl::SimpleAtoi(parts[i], &number)) return absl::c_linear_search(*layer_numbers, number);
  }
  return !layer_numbers;
}

absl::StatusOr<AdapterConfig> ReadAdapterConfig(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kAdapterConfig);
  WEFT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  return Annotate(FromJson(folder, json), path);
}

bool IsAdapter(const std::string& folder) {
  return !Exists(folder + "/config.json") && Exists(absl::StrCat(folder, "/", kAdapterConfig));
}

absl::StatusOr<std::vector<NamedTensor>> MergeAdapters(absl::Span<const NamedTensor> tensors, double scale,
                                                       Arena* arena) {
  absl::flat_hash_map<std::string, Tensor> by_name;
  for (const auto& [name, tensor] : tensors) by_name[name] = tensor;
  const auto find = [&](absl::string_view layer, const char* end) -> const Tensor* {
    const auto found = by_name.find(absl::StrCat(layer, end));
    return found != by_name.end() ? &found->second : nullptr;
  };
  std::vector<NamedTensor> merged;
  for (const auto& [name, tensor] : tensors) {
    absl::string_view layer = name;
    const bool adapter = absl::ConsumeSuffix(&layer, kLoraA) || absl::ConsumeSuffix(&layer, kLoraB);
    if (adapter && find(layer, ".weight") != nullptr) {
      if (find(layer, kLoraA) != nullptr && find(layer, kLoraB) != nullptr) continue;
      return InvalidArgument("'", name, "' is only one of the adapter's tensors; wanted both ", &kLoraA[1], " and ",
                             &kLoraB[1]);
    }
    const bool weight = !adapter && absl::ConsumeSuffix(&layer, ".weight");
    const Tensor *const a = weight ? find(layer, kLoraA) : nullptr, *const b = weight ? find(layer, kLoraB) : nullptr;
    if (a == nullptr || b == nullptr) {
      merged.push_back({name, tensor});
      continue;
    }
    if (!Fit(tensor.type, a->type, b->type)) {
      return InvalidArgument("the adapter of '", name, "' ", ToString(tensor.type), " has A ", ToString(a->type),
                             " and B ", ToString(b->type), "; wanted f32 [rank, in] and [out, rank]");
    }
    const Tensor to = {tensor.type, arena->Allocate(tensor.type.bytes())};
    if (to.data == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no memory to merge '", name, "'"));
    Merge(tensor, *a, *b, scale, to);
    merged.push_back({name, to});
  }
  return merged;
}

}  // namespace weft
