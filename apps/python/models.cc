// weft.models: attention, blocks and model families. weft.optimizers. The simpler layers are generated.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/apps/python/bind.h"
#include "weft/formats/config_json.h"
#include "weft/models/bert.h"
#include "weft/models/block.h"
#include "weft/models/gpt.h"
#include "weft/models/options.h"
#include "weft/models/transformer.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

// Binds a model family, whose configuration has the members `vocabularies`. In Python, they are numbers beside a JSON
// object with the other options (ReadModelConfig).
template <class Family, class Config>
void BindFamily(py::module_ m, const char* name, const std::vector<int64_t Config::*>& vocabularies) {
  const auto read = [vocabularies](const std::string& json, const std::vector<int64_t>& sizes) {
    Config config;
    for (size_t i = 0; i < std::min(sizes.size(), vocabularies.size()); ++i) {
      if (sizes[i] != -1) config.*vocabularies[i] = sizes[i];  // -1: the default
    }
    Raise(ReadModelConfig(nlohmann::ordered_json::parse(json), &config));
    Raise(Validate(config));
    return Family(config);
  };
  py::class_<Family>(m, name)
      .def(py::init(read), py::arg("json"), py::arg("vocabularies"))
      .def_property_readonly("config", [](const Family& self) { return Get(WriteModelConfig(self.config())).dump(); });
}

// Sets options of attention by name: heads, causal, dropout, bias, and those of models/options.h. Raises ValueError if
// x can't have such attention.
AttentionOptions ReadAttention(Var x, const GivenFlags& texts) {
  AttentionOptions options;
  Hyperparameters table = {{"heads", "", &options.heads, {.low = 1}},
                           {"causal", "", &options.causal},
                           {"dropout", "", &options.dropout, {.low = 0}},
                           {"bias", "", &options.bias}};
  Append(AttentionRows(&options.variant), &table);
  SetOptions(texts, table);
  options.residual_dropout = options.dropout;
  Raise(Validate(options.variant, options.ablation, options.heads, x.dim(-1)));
  return options;
}

OptimizerSettings ReadSettings(const GivenFlags& texts) {
  OptimizerSettings settings;
  std::string groups;
  Hyperparameters table = {{"clip", "", &settings.clip, {.low = 0}},
                           {"clip-value", "", &settings.clip_value, {.low = 0}},
                           {"groups", "", &groups}};
  ForEachSetting([&](const auto& row) { table.push_back({row.name, row.help, &(settings.*row.value)}); });
  SetOptions(texts, table);
  settings.groups = Get(ParseParameterGroups(groups));
  return settings;
}

Optimizer MakeOptimizer(const std::string& name, const GivenFlags& texts) {
  if (FindOptimizer(name) == nullptr) Raise(InvalidArgument("optimizer '", name, "' is unknown"));
  return {*FindOptimizer(name), ReadSettings(texts)};
}

Minimized Minimize(const Optimizer& self, Var loss, Var rate) {
  Minimized update = self.Minimize(loss, rate);
  Raise(loss.tape->status());
  return update;
}

void BindOptimizers(py::module_ m) {
  py::class_<Minimized>(m, "Minimized", "A recorded update: `update` is for the list `update` of weft.compile.")
      .def_readonly("update", &Minimized::update)
      .def_readonly("gradient_norm", &Minimized::gradient_norm);
  py::class_<Optimizer>(m, "Optimizer")
      .def(py::init(&MakeOptimizer), py::arg("name"), py::arg("settings"))
      .def("minimize", Minimize, py::arg("loss"), py::arg("rate"),
           "Records the gradients of `loss` by all weights, their clipping, and the update of the weights.");
}

}  // namespace

void BindModels(py::module_ m) {
  py::module_ models = m.def_submodule("_models");
  BindFamily<Gpt, GptConfig>(models, "_Gpt", {&GptConfig::vocabulary});
  BindFamily<Bert, BertConfig>(models, "_Bert", {&BertConfig::vocabulary});
  BindFamily<Transformer, TransformerConfig>(
      models, "_Transformer", {&TransformerConfig::source_vocabulary, &TransformerConfig::target_vocabulary});
  models.def(
      "_multi_head_attention",
      [](const std::string& name, Var x, std::optional<Var> memory, std::optional<Var> mask, const GivenFlags& texts) {
        return Recorded(
            MultiHeadAttention(name, x, ReadAttention(x, texts), {memory.value_or(Var()), mask.value_or(Var())}));
      },
      py::arg("name"), py::arg("x"), py::arg("memory"), py::arg("mask"), py::arg("options"));
  models.def(
      "_block",
      [](const std::string& name, Var x, std::optional<Var> mask, bool pre_norm, int64_t feed_forward,
         const GivenFlags& texts) {
        BlockOptions options = {.attention = ReadAttention(x, texts), .pre_norm = pre_norm};
        options.feed_forward.width = feed_forward;
        options.feed_forward.dropout = options.attention.dropout;
        options.feed_forward.bias = options.attention.bias;
        return Recorded(Block(name, x, options, {.attention = {.mask = mask.value_or(Var())}}));
      },
      py::arg("name"), py::arg("x"), py::arg("mask"), py::arg("pre_norm"), py::arg("feed_forward"), py::arg("options"));
  BindOptimizers(m.def_submodule("_optimizers"));
}

}  // namespace weft
