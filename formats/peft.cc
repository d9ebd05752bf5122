// This file defines the format of adapters by PEFT: adapter_config.json and adapter_model.safetensors (adapters.h). The
// model that is read is the base model with the adapters merged into its weights. WriteAdapter writes adapters alone.
// PEFT names a tensor "base_model.model.", then the layer's name in Hugging Face's model, then ".lora_A.weight".
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/arena.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/core/safetensors.h"
#include "weft/formats/adapters.h"
#include "weft/formats/published.h"
#include "weft/models/lora.h"

namespace weft {
namespace {

// Returns the name of a tensor's layer.
absl::string_view LayerOf(absl::string_view name) {
  for (const absl::string_view end : {kLoraA, kLoraB, ".weight", ".bias"}) {
    if (absl::ConsumeSuffix(&name, end)) break;
  }
  return name;
}

// Returns the name that a tensor of PEFT has among the base's `weights`. Hugging Face's models put a prefix such as
// "bert." before the names of most layers. A head that the base lacks keeps its name.
std::string OwnName(const std::string& name, const Weights& weights) {
  const absl::string_view layer = LayerOf(name);
  if (weights.Find(absl::StrCat(layer, ".weight")) != nullptr) return name;
  const size_t dot = layer.find('.');
  const bool prefixed =
      dot != absl::string_view::npos && weights.Find(absl::StrCat(layer.substr(dot + 1), ".weight")) != nullptr;
  return prefixed ? name.substr(dot + 1) : name;
}

// Returns the adapter's tensors with the names of Hugging Face's layers. PEFT calls the weights of a layer that has an
// adapter "base_layer". The adapter A·B of an embedding, whose table is [in, out], becomes that of the weight's rows.
absl::StatusOr<Weights> ReadTensors(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(
      Weights adapter,
      ReadFolderWeights(path, {{{"base_model.model.#", {"#"}}},
                               {{"#.base_layer.weight", {"#.weight"}},
                                {"#.base_layer.bias", {"#.bias"}},
                                {"#.lora_embedding_A", {absl::StrCat("#", kLoraB)}, /*transpose=*/true},
                                {"#.lora_embedding_B", {absl::StrCat("#", kLoraA)}, /*transpose=*/true}}}));
  if (adapter.unread().empty()) return adapter;
  const auto& [name, type] = adapter.unread()[0];
  return InvalidArgument(path, ": '", name, "' is ", type, ", which is not supported");
}

// Gives the tensor `named.name` of `weights` the type and bytes of `named`.
absl::Status Replace(const NamedTensor& named, Weights* weights) {
  WEFT_RETURN_IF_ERROR(weights->Apply({{named.name, {}}}));
  return weights->AddCopy(named.name, named.tensor);
}

// PEFT gives a layer with an adapter, or a layer that it saves as a whole, weights of its own. So if the layer is a
// token table or head that the base ties, they are no longer tied.
absl::Status Untie(const std::set<std::string>& layers, PublishedModel* model) {
  const ModelFamily& family = FamilyOf(*model);
  if (family.tied == nullptr) return absl::OkStatus();
  const std::vector<std::string> tied = family.tied(*model);
  for (const std::string& layer : layers) {
    if (!absl::c_linear_search(tied, layer)) continue;
    if (family.untie != nullptr) return family.untie(model);
    return InvalidArgument("it changes '", layer, "', which is one weight with another layer of the base model");
  }
  return absl::OkStatus();
}

absl::Status MergeInto(const Weights& adapter, const AdapterConfig& config, PublishedModel* model) {
  Weights& weights = WeightsOf(*model);
  const ModelFamily& family = FamilyOf(*model);
  // The token table and the head, if they can be untied.
  const std::vector<std::string> tied = family.untie != nullptr ? family.tied(*model) : std::vector<std::string>();
  std::vector<NamedTensor> low_rank;
  Weights whole, saved;           // that replace weights of the base, and layers of modules_to_save
  std::set<std::string> changed;  // layers that get weights of their own
  Weights renamed = adapter;
  if (family.own_names != nullptr) {
    for (const auto& rules : family.own_names(*model)) WEFT_RETURN_IF_ERROR(renamed.Apply(rules));
  }
  if (renamed.tensors().size() != adapter.tensors().size()) {
    return InvalidArgument("it has tensors that are no layers of the model, or several");
  }
  for (size_t i = 0; i < adapter.tensors().size(); ++i) {
    const auto& [published, tensor] = adapter.tensors()[i];
    // With bias "all", PEFT also writes the biases of both copies of a saved module under these names. It reads
    // neither.
    if (absl::StrContains(published, ".modules_to_save.") || absl::StrContains(published, ".original_module."))
      continue;
    std::string name = OwnName(renamed.tensors()[i].name, weights);
    const absl::string_view layer = LayerOf(published);
    const bool a = absl::EndsWith(name, kLoraA), b = absl::EndsWith(name, kLoraB), saves = config.Saves(layer);
    if (a || b || saves) changed.emplace(LayerOf(name));
    if ((a || b) && !config.Targets(layer)) {
      return InvalidArgument("'", published,
                             "' is of no layer that target_modules, exclude_modules, layers_to_transform and "
                             "layers_pattern choose in ",
                             kAdapterConfig);
    }
    if (a && tensor.type.shape.dim(0) != config.RankOf(layer)) {
      return InvalidArgument("'", published, "' is ", ToString(tensor.type), ", but the rank is ",
                             config.RankOf(layer));
    }
    if (b && tensor.type.dtype == kF32) {
      for (float& value : tensor.span<float>()) value *= static_cast<float>(config.ScaleOf(layer));
    }
    if (a || b) {
      low_rank.push_back({name, tensor});
      continue;
    }
    // PEFT also stores the weights of a table or head that has an adapter, though the base has them, too.
    if (!saves && !tied.empty() && name == absl::StrCat(tied[1], ".weight")) name = absl::StrCat(tied[0], ".weight");
    if (!saves && weights.Find(name) == nullptr) {
      return InvalidArgument("'", published, "' is neither of a low-rank adapter nor of modules_to_save");
    }
    Weights& list = saves ? saved : whole;
    if (list.Find(name) == nullptr) WEFT_RETURN_IF_ERROR(list.AddCopy(name, tensor));
  }
  for (Weights* const each : {&whole, &saved}) {
    if (each == &saved) WEFT_RETURN_IF_ERROR(Untie(changed, model));
    WEFT_RETURN_IF_ERROR(each->Apply(Gpt2Transposes()));
    for (const NamedTensor& named : each->tensors()) WEFT_RETURN_IF_ERROR(Replace(named, &weights));
  }
  low_rank.insert(low_rank.end(), weights.tensors().begin(), weights.tensors().end());
  Arena arena;
  WEFT_ASSIGN_OR_RETURN(const std::vector<NamedTensor> merged, MergeAdapters(low_rank, /*scale=*/1, &arena));
  for (const NamedTensor& named : merged) {
    const Tensor* const before = weights.Find(named.name);
    if (before == nullptr) return InvalidArgument("the base model has no layer for '", named.name, "'");
    if (before->data != named.tensor.data) WEFT_RETURN_IF_ERROR(Replace(named, &weights));
  }
  return absl::OkStatus();
}

absl::Status CheckBase(const std::string& base) {
  if (!IsAdapter(base)) return absl::OkStatus();
  return InvalidArgument("the base model ", base, " is an adapter, too; wanted a model");
}

absl::StatusOr<PublishedModel> Read(const std::string& folder, const Json&) {
  WEFT_ASSIGN_OR_RETURN(const AdapterConfig config, ReadAdapterConfig(folder));
  WEFT_RETURN_IF_ERROR(Annotate(CheckBase(config.base), folder));
  WEFT_ASSIGN_OR_RETURN(PublishedModel model, ReadModel(config.base));
  const std::string path = absl::StrCat(folder, "/", kAdapterWeights);
  WEFT_ASSIGN_OR_RETURN(const Weights adapter, ReadTensors(path));
  Weights& weights = WeightsOf(model);
  WEFT_RETURN_IF_ERROR(Annotate(weights.ConvertToF32(), config.base));
  WEFT_RETURN_IF_ERROR(Annotate(MergeInto(adapter, config, &model), path));
  if (const ModelFamily& family = FamilyOf(model); family.fit_labels != nullptr) family.fit_labels(&model);
  WEFT_RETURN_IF_ERROR(Parameters::Check(path, weights.tensors(), ParametersOf(model)));
  return model;
}

}  // namespace

absl::Status WriteAdapter(const std::string& folder, const TrainedAdapter& adapter, const Parameters& parameters) {
  Weights weights;
  for (const std::string& name : parameters.Names(Parameters::kTrained)) {
    WEFT_RETURN_IF_ERROR(weights.AddCopy(name, *parameters.Find(name)));
  }
  const ModelFamily* const family = FamilyOfType(adapter.model_type);
  const bool gpt2 = adapter.model_type == "gpt2";
  if (family != nullptr && family->publish_adapter != nullptr) {
    WEFT_RETURN_IF_ERROR(family->publish_adapter(adapter.model_type, &weights));
  }
  std::set<std::string> targets, saved;
  for (const NamedTensor& named : weights.tensors()) {
    const bool low_rank = absl::EndsWith(named.name, kLoraA) || absl::EndsWith(named.name, kLoraB);
    (low_rank ? targets : saved).emplace(LayerOf(named.name));
  }
  WEFT_RETURN_IF_ERROR(weights.Apply({{"#", {"base_model.model.#"}}}));
  const auto is_classifier = [](const std::string& layer) { return absl::StartsWith(layer, "classifier"); };
  Json json = {{"peft_type", "LORA"},
               {"task_type", gpt2                                   ? Json("CAUSAL_LM")
                             : absl::c_any_of(saved, is_classifier) ? Json("SEQ_CLS")
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
  WEFT_RETURN_IF_ERROR(
      WriteSafetensors(absl::StrCat(folder, "/", kAdapterWeights), weights.tensors(), {{"format", "pt"}}));
  return WriteFile(absl::StrCat(folder, "/", kAdapterConfig), {json.dump(2), "\n"});
}

constexpr Format kPeftFormat = {
    .name = "peft",
    .recognizes = [](const Json& config) { return config.is_object() && config.contains("peft_type"); },
    .family = [](const Json& config) -> absl::StatusOr<const ModelFamily*> {
      const std::string base = config["base_model_name_or_path"].get<std::string>();
      WEFT_RETURN_IF_ERROR(CheckBase(base));
      return FindFamily(base);
    },
    .read = Read,
};

}  // namespace weft
