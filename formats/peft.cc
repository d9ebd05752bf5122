// This file defines the format of adapters by PEFT, which is only read: adapter_config.json and
// adapter_model.safetensors (adapters.h). The result is the base model with the adapters merged into its weights.
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/arena.h"
#include "weft/base/status.h"
#include "weft/formats/adapters.h"
#include "weft/formats/config_json.h"
#include "weft/formats/gpt_layouts.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

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
  WEFT_ASSIGN_OR_RETURN(Weights adapter, Weights::ReadSafetensors(path));
  for (const std::vector<Weights::Rule>& rules :
       {std::vector<Weights::Rule>{{"base_model.model.#", {"#"}}},
        {{"#.base_layer.weight", {"#.weight"}},
         {"#.base_layer.bias", {"#.bias"}},
         {"#.lora_embedding_A", {absl::StrCat("#", kLoraB)}, /*transpose=*/true},
         {"#.lora_embedding_B", {absl::StrCat("#", kLoraA)}, /*transpose=*/true}}}) {
    WEFT_RETURN_IF_ERROR(Annotate(adapter.Apply(rules), path));
  }
  if (adapter.unread().empty()) return adapter;
  const auto& [name, type] = adapter.unread()[0];
  return InvalidArgument(path, ": '", name, "' is ", type, ", which is not supported");
}

// Gives the tensor `named.name` of `weights` the type and bytes of `named`.
absl::Status Replace(const NamedTensor& named, Weights* weights) {
  WEFT_RETURN_IF_ERROR(weights->Apply({{named.name, {}}}));
  WEFT_ASSIGN_OR_RETURN(const Tensor to, weights->Add(named.name, named.tensor.type));
  std::memcpy(to.data, named.tensor.data, to.type.bytes());
  return absl::OkStatus();
}

// PEFT gives a layer with an adapter, or a layer that it saves as a whole, weights of its own. So if the layer is a
// token table or head that the base ties, they are no longer tied. Only a GPT can have both.
absl::Status Untie(const std::set<std::string>& layers, PublishedModel* model) {
  std::set<std::string> tied;
  auto* const gpt = std::get_if<PublishedGpt>(model);
  if (gpt != nullptr && gpt->config.tied_head) tied = {std::string(TokenTable(gpt->config)), "lm_head"};
  if (WeightsOf(*model).Has("cls.predictions.")) tied = {"embeddings.word_embeddings", "cls.predictions.decoder"};
  if (const auto* const transformer = std::get_if<PublishedTransformer>(model)) {
    if (transformer->config.shared_embeddings) tied = {"shared"};
    if (transformer->config.tied_head) tied.insert("decoder.embed_tokens");
  }
  for (const std::string& layer : layers) {
    if (!tied.contains(layer)) continue;
    if (gpt == nullptr) {
      return InvalidArgument("it changes '", layer, "', which is one weight with another layer of the base model");
    }
    const Tensor table = *gpt->weights.Find(absl::StrCat(TokenTable(gpt->config), ".weight"));
    WEFT_ASSIGN_OR_RETURN(const Tensor head, gpt->weights.Add("lm_head.weight", table.type));
    std::memcpy(head.data, table.data, table.type.bytes());
    gpt->config.tied_head = false;
    break;
  }
  return absl::OkStatus();
}

absl::Status MergeInto(const Weights& adapter, const AdapterConfig& config, PublishedModel* model) {
  Weights& weights = WeightsOf(*model);
  std::vector<NamedTensor> low_rank;
  Weights whole, saved;  // that replace weights of the base, and layers of modules_to_save
  const auto* const gpt = std::get_if<PublishedGpt>(model);
  std::set<std::string> changed;  // layers that get weights of their own
  for (const auto& [published, tensor] : adapter.tensors()) {
    // With bias "all", PEFT also writes the biases of both copies of a saved module under these names. It reads
    // neither.
    if (absl::StrContains(published, ".modules_to_save.") || absl::StrContains(published, ".original_module."))
      continue;
    std::string name = OwnName(published, weights);
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
    const bool tied = gpt != nullptr && gpt->config.tied_head && !saves && name == "lm_head.weight";
    if (tied) name = absl::StrCat(TokenTable(gpt->config), ".weight");
    if (!saves && weights.Find(name) == nullptr) {
      return InvalidArgument("'", published, "' is neither of a low-rank adapter nor of modules_to_save");
    }
    Weights& list = saves ? saved : whole;
    if (list.Find(name) != nullptr) continue;
    WEFT_ASSIGN_OR_RETURN(const Tensor to, list.Add(name, tensor.type));
    std::memcpy(to.data, tensor.data, tensor.type.bytes());
  }
  for (Weights* const each : {&whole, &saved}) {
    if (each == &saved) WEFT_RETURN_IF_ERROR(Untie(changed, model));
    if (gpt != nullptr && gpt->config.names == GptConfig::Names::kGpt2) {
      WEFT_RETURN_IF_ERROR(each->Apply(TransposedGpt2Weights()));
    }
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

// If the adapter brought a classifier with another number of classes than the base's, the labels get Hugging Face's
// default names.
void NameLabels(PublishedBert* bert) {
  const Tensor* const classifier = bert->weights.Find("classifier.weight");
  if (classifier == nullptr || classifier->type.shape.rank() != 2) return;
  const auto classes = static_cast<size_t>(classifier->type.shape.dim(0));
  if (bert->labels.size() == classes) return;
  bert->labels = UsualLabels(classifier->type.shape.dim(0));
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
  if (auto* const bert = std::get_if<PublishedBert>(&model)) NameLabels(bert);
  WEFT_RETURN_IF_ERROR(Parameters::Check(path, weights.tensors(), ParametersOf(model)));
  return model;
}

}  // namespace

constexpr Format kPeftFormat = {
    .name = "peft",
    .mark = "",
    .recognizes = [](const Json& config) { return config.is_object() && config.contains("peft_type"); },
    .family = [](const Json& config) -> absl::StatusOr<const ModelFamily*> {
      const std::string base = config["base_model_name_or_path"].get<std::string>();
      WEFT_RETURN_IF_ERROR(CheckBase(base));
      return FindFamily(base);
    },
    .read = Read,
    .writes = nullptr,
    .write = nullptr,
    .files = {},
};

}  // namespace weft
