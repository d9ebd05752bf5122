// This file defines the format of adapters by PEFT, which is only read: adapter_config.json and
// adapter_model.safetensors (adapters.h). The result is the base model with the adapters merged into its weights.
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/core/arena.h"
#include "weft/core/status.h"
#include "weft/formats/adapters.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Returns the name that a tensor of PEFT has among the base's `weights`. Hugging Face's models put a prefix such as
// "bert." before the names of most layers. A head that the base lacks keeps its name.
std::string OwnName(absl::string_view name, const Weights& weights) {
  absl::ConsumePrefix(&name, "base_model.model.");
  absl::string_view layer = name;
  for (const absl::string_view end : {kLoraA, kLoraB, ".weight", ".bias"}) {
    if (absl::ConsumeSuffix(&layer, end)) break;
  }
  if (weights.Find(absl::StrCat(layer, ".weight")) != nullptr) return std::string(name);
  const size_t dot = layer.find('.');
  const bool prefixed =
      dot != absl::string_view::npos && weights.Find(absl::StrCat(layer.substr(dot + 1), ".weight")) != nullptr;
  return std::string(prefixed ? name.substr(dot + 1) : name);
}

// Gives the tensor `named.name` of `weights` the type and bytes of `named`.
absl::Status Replace(const NamedTensor& named, Weights* weights) {
  WEFT_RETURN_IF_ERROR(weights->Apply({{named.name, {}}}));
  WEFT_ASSIGN_OR_RETURN(const Tensor to, weights->Add(named.name, named.tensor.type));
  std::memcpy(to.data, named.tensor.data, to.type.bytes());
  return absl::OkStatus();
}

absl::Status MergeInto(const Weights& adapter, double scale, Weights* weights) {
  std::vector<NamedTensor> tensors;
  std::vector<NamedTensor> heads;
  for (const auto& [name, tensor] : adapter.tensors()) {
    const std::string own = OwnName(name, *weights);
    const bool low_rank = absl::EndsWith(own, kLoraA) || absl::EndsWith(own, kLoraB);
    (low_rank ? tensors : heads).push_back({own, tensor});
  }
  for (const NamedTensor& head : heads) WEFT_RETURN_IF_ERROR(Replace(head, weights));
  tensors.insert(tensors.end(), weights->tensors().begin(), weights->tensors().end());
  Arena arena;
  WEFT_ASSIGN_OR_RETURN(const std::vector<NamedTensor> merged, MergeAdapters(tensors, scale, &arena));
  for (const NamedTensor& named : merged) {
    const Tensor* const before = weights->Find(named.name);
    if (before == nullptr) return InvalidArgument("the base model has no layer for '", named.name, "'");
    if (before->data != named.tensor.data) WEFT_RETURN_IF_ERROR(Replace(named, weights));
  }
  return absl::OkStatus();
}

// If the adapter brought a classifier with another number of classes than the base's, the labels get Hugging Face's
// default names.
void NameLabels(PublishedBert* bert) {
  const Tensor* const classifier = bert->weights.Find("classifier.weight");
  if (classifier == nullptr || classifier->type.shape.rank() != 2) return;
  const auto classes = static_cast<size_t>(classifier->type.shape.dim(0));
  if (bert->labels.size() == classes) return;
  bert->labels.clear();
  for (size_t i = 0; i < classes; ++i) bert->labels.push_back(absl::StrCat("LABEL_", i));
}

absl::StatusOr<PublishedModel> Read(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const AdapterConfig config, ReadAdapterConfig(folder));
  if (IsAdapter(config.base)) {
    return InvalidArgument(folder, ": the base model ", config.base, " is an adapter, too; wanted a model");
  }
  WEFT_ASSIGN_OR_RETURN(PublishedModel model, ReadModel(config.base));
  const std::string path = absl::StrCat(folder, "/", kAdapterWeights);
  WEFT_ASSIGN_OR_RETURN(const Weights adapter, Weights::ReadSafetensors(path));
  Weights& weights = WeightsOf(model);
  WEFT_RETURN_IF_ERROR(Annotate(weights.ConvertToF32(), config.base));
  WEFT_RETURN_IF_ERROR(Annotate(MergeInto(adapter, config.scale, &weights), path));
  if (auto* const bert = std::get_if<PublishedBert>(&model)) NameLabels(bert);
  WEFT_RETURN_IF_ERROR(Parameters::Check(path, weights.tensors(), ParametersOf(model)));
  return model;
}

}  // namespace

constexpr Format kPeftFormat = {
    .name = "peft",
    .mark = "",
    .recognizes = [](const Json& config) { return config.is_object() && config.contains("peft_type"); },
    .family = [](const Json& config) { return FindFamily(config["base_model_name_or_path"].get<std::string>()); },
    .read = Read,
    .writes = nullptr,
    .write = nullptr,
    .files = {},
};

}  // namespace weft
