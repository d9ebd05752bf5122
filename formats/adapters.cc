// PEFT names a tensor "base_model.model.", then the layer's name in Hugging Face's model, then ".lora_A.weight".
#include "weft/formats/adapters.h"

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/formats/run_path.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Keys of adapter_config.json that change the computation, with the values that leave it as plain LoRA. null, false,
// and empty objects and lists do so for every key.
constexpr const char* kExtensions[] = {
    "alora_invocation_tokens", "alpha_pattern", "layer_replication", "lora_bias",  "rank_pattern", "target_parameters",
    "trainable_token_indices", "use_bdlora",    "use_dora",          "use_qalora", "use_rslora"};

// The names that a model_type of Hugging Face adds before the layers' own.
struct Prefix {
  const char *model_type, *prefix;
  std::vector<const char*> without;  // beginnings of names that get no prefix
};
const std::vector<Prefix>& Prefixes() {
  static const auto* const prefixes =
      new std::vector<Prefix>{{"bert", "bert.", {"cls.", "classifier"}}, {"gpt2", "transformer.", {"lm_head"}}};
  return *prefixes;
}

std::string PublishedName(const std::string& model_type, const std::string& name) {
  for (const Prefix& each : Prefixes()) {
    if (model_type != each.model_type) continue;
    for (const char* const without : each.without) {
      if (absl::StartsWith(name, without)) return name;
    }
    return absl::StrCat(each.prefix, name);
  }
  return name;
}

absl::StatusOr<AdapterConfig> FromJson(const std::string& folder, const Json& json) {
  const auto value = [&](const char* key) { return json.contains(key) ? json[key] : Json(); };
  if (value("peft_type") != "LORA") return InvalidArgument("peft_type is ", value("peft_type").dump(), ", wanted LORA");
  for (const char* const key : kExtensions) {
    const Json got = value(key);
    if (got.empty() || got == false) continue;
    return InvalidArgument(key, " is ", got.dump(), ", which is not supported; wanted plain LoRA without it");
  }
  if (const Json bias = value("bias"); !bias.is_null() && bias != "none") {
    return InvalidArgument("bias is ", bias.dump(), ", which is not supported; wanted \"none\"");
  }
  for (const char* const key : {"r", "lora_alpha"}) {
    if (value(key).is_number() && value(key).get<double>() > 0) continue;
    return InvalidArgument(key, " is ", value(key).dump(), ", wanted a number above 0");
  }
  const Json base = value("base_model_name_or_path");
  AdapterConfig config = {.scale = value("lora_alpha").get<double>() / value("r").get<double>()};
  if (base.is_string() && !base.get<std::string>().empty()) {
    config.base = base.get<std::string>();
    if (Exists(config.base)) return config;
    config.base = (fs::path(folder) / config.base).string();
    if (Exists(config.base)) return config;
  }
  return InvalidArgument("base_model_name_or_path is ", base.dump(), ", wanted the path of the base model's folder");
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

absl::StatusOr<AdapterConfig> ReadAdapterConfig(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kAdapterConfig);
  WEFT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  absl::StatusOr<AdapterConfig> config = FromJson(folder, json);
  if (!config.ok()) return Annotate(config.status(), path);
  return config;
}

bool IsAdapter(const std::string& folder) {
  return !Exists(folder + "/config.json") && Exists(absl::StrCat(folder, "/", kAdapterConfig));
}

std::string BaseOf(const std::string& model) {
  const absl::StatusOr<AdapterConfig> config = IsAdapter(model) ? ReadAdapterConfig(model) : AdapterConfig{model};
  return ParseRunPath(config.ok() ? config->base : model).folder;
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

absl::Status WriteAdapter(const std::string& folder, const TrainedAdapter& adapter, const Parameters& parameters) {
  std::vector<NamedTensor> tensors;
  std::set<std::string> targets, saved;
  for (const std::string& name : parameters.Names(Parameters::kTrained)) {
    WEFT_ASSIGN_OR_RETURN(const Tensor tensor, parameters.Find(name));
    const std::string published = PublishedName(adapter.model_type, name);
    tensors.push_back({absl::StrCat("base_model.model.", published), tensor});
    absl::string_view layer = published;
    if (absl::ConsumeSuffix(&layer, kLoraA) || absl::ConsumeSuffix(&layer, kLoraB)) {
      targets.emplace(layer);
    } else {
      if (!absl::ConsumeSuffix(&layer, ".weight")) absl::ConsumeSuffix(&layer, ".bias");
      saved.emplace(layer);
    }
  }
  const bool gpt2 = adapter.model_type == "gpt2";
  Json json = {{"peft_type", "LORA"},
               {"task_type", gpt2                           ? Json("CAUSAL_LM")
                             : saved.contains("classifier") ? Json("SEQ_CLS")
                                                            : Json()},
               {"base_model_name_or_path", adapter.base.empty() ? Json() : Json(adapter.base)},
               {"r", adapter.lora.rank},
               {"lora_alpha", adapter.lora.alpha},
               {"lora_dropout", adapter.lora.dropout},
               {"target_modules", targets},
               {"modules_to_save", saved.empty() ? Json() : Json(saved)},
               {"fan_in_fan_out", gpt2},  // GPT-2's layers in Hugging Face hold [in, out]
               {"bias", "none"},
               {"inference_mode", true}};
  WEFT_RETURN_IF_ERROR(WriteSafetensors(absl::StrCat(folder, "/", kAdapterWeights), tensors, {{"format", "pt"}}));
  return WriteFile(absl::StrCat(folder, "/", kAdapterConfig), {json.dump(2), "\n"});
}

}  // namespace weft
