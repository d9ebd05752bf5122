// This file has the table of encoders of BERT's kind, BERT's own row, and the functions that read and write their
// configurations and the names of their weights.
#include "weft/formats/bert_type.h"

#include <array>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/formats/all_bert_types.h"
#include "weft/formats/config_json.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

void ReadBert(KeyReader& keys, BertConfig& config) {
  ListBertKeys(keys, config);
  ListTables(keys, config);
  ListClassifierDropout(keys, config);
  keys.Choice("classifier_pooling", Choices<Pooling>(kPoolings), config.classifier_pooling);
  // Google's own checkpoints have these keys, but no code reads them. Nor does transformers 5 read the last: tensors of
  // relative positions, which it ignores, are refused.
  keys.Harmless({"directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                 "pooler_size_per_head", "pooler_type", "position_embedding_type"});
}

void WriteBert(KeyWriter& keys, BertConfig& config) {
  ListBertKeys(keys, config);
  ListTables(keys, config);
  ListClassifierDropout(keys, config);
  keys.Field("position_embedding_type", "absolute");
  if (config.classifier_pooling != Pooling::kFirst) {  // encoders that are newer than BERT have this key
    keys.Choice("classifier_pooling", Choices<Pooling>(kPoolings), config.classifier_pooling);
  }
}

constexpr absl::string_view kBertClasses[] = {kModelClass, kTrainingClass, kMaskedClass, kNextClass,
                                              kTextClass,  kTokensClass,   kAnswerClass, kChoiceClass};

}  // namespace

constexpr BertType kBertType = {.prefix = "bert.", .read = ReadBert, .write = WriteBert, .classes = kBertClasses};

namespace {

struct TypeRow {
  absl::string_view model_type, class_name;  // class_name: with what the names of its classes begin
  const BertType& type;
};
constexpr TypeRow kTypes[] = {
    {"bert", "Bert", kBertType},
    {"roberta", "Roberta", kRobertaType},
    {"xlm-roberta", "XLMRoberta", kRobertaType},
    {"camembert", "Camembert", kRobertaType},
    {"distilbert", "DistilBert", kDistilBertType},
    {"electra", "Electra", kElectraType},
    {"mpnet", "MPNet", kMpNetType},
    {"albert", "Albert", kAlbertType},
    {"modernbert", "ModernBert", kModernBertType},
};

constexpr auto kModelTypes = [] {
  std::array<absl::string_view, std::size(kTypes)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kTypes[i].model_type;
  return names;
}();

const TypeRow* FindType(absl::string_view model_type) {
  const auto* const row = absl::c_find_if(kTypes, [&](const TypeRow& each) { return each.model_type == model_type; });
  return row != std::end(kTypes) ? row : nullptr;
}

const TypeRow& TypeOf(absl::string_view model_type) {
  const TypeRow* const row = FindType(model_type);
  WEFT_CHECK(row != nullptr);  // readers set model_types of the table
  return *row;
}

}  // namespace

absl::Span<const absl::string_view> BertModelTypes() { return kModelTypes; }

std::string ClassName(const BertConfig& config, absl::string_view suffix) {
  return absl::StrCat(TypeOf(config.model_type).class_name, suffix);
}

bool HasClass(const BertConfig& config, absl::string_view suffix) {
  return absl::c_linear_search(TypeOf(config.model_type).type.classes, suffix);
}

std::vector<std::vector<Weights::Rule>> OwnNames(const BertConfig& config) {
  const BertType& type = TypeOf(config.model_type).type;
  std::vector<Weights::Rule> names;
  for (const auto& list : {type.layers, type.heads, type.classifier}) AppendRules(list, &names);
  return {{{absl::StrCat(type.prefix, "#"), {"#"}}},
          {{"embeddings.position_ids", {}}, {"#.gamma", {"#.weight"}}, {"#.beta", {"#.bias"}}},
          std::move(names)};
}

absl::Status Publish(absl::string_view model_type, bool heads, bool classifier, Weights* weights) {
  const BertType& type = TypeOf(model_type).type;
  const std::string prefix(heads ? type.prefix : "");
  std::vector<Weights::Rule> prefixes, names;
  AppendRules(type.layers, &names);
  AppendRules(type.heads, &names);
  if (classifier) AppendRules(type.classifier, &names);
  WEFT_RETURN_IF_ERROR(weights->Revert(names));
  for (const absl::string_view head : {"cls.", "classifier.", "qa_outputs.", "discriminator_predictions."}) {
    prefixes.push_back({absl::StrCat(head, "#"), {absl::StrCat(head, "#")}});
  }
  for (const LayerName& head : type.heads) {
    prefixes.push_back({absl::StrCat(head.published, ".#"), {absl::StrCat(head.published, ".#")}});
  }
  prefixes.push_back({"#", {absl::StrCat(prefix, "#")}});
  return weights->Apply(prefixes);
}

template <>
absl::StatusOr<BertConfig> ConfigFromJson(const Json& json) {
  KeyReader keys(json);
  BertConfig config = {.feed_forward = 3072};
  config.attention_dropout = 0.1;
  keys.Field("model_type", config.model_type);
  WEFT_RETURN_IF_ERROR(keys.Refused());
  const TypeRow* const row = FindType(config.model_type);
  if (row == nullptr) {
    keys.Refuse("model_type", absl::StrJoin(kModelTypes, ", "));
    return keys.Refused();
  }
  row->type.read(keys, config);
  std::vector<std::string> classes;
  for (const absl::string_view suffix : row->type.classes) classes.push_back(absl::StrCat(row->class_name, suffix));
  ReadUsualKeys(keys, std::vector<absl::string_view>(classes.begin(), classes.end()));
  return Finished(keys, config);
}

absl::StatusOr<Json> ToJson(const BertConfig& config) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  KeyWriter keys;
  keys.Field("model_type", config.model_type);
  keys.Field("architectures", std::vector<std::string>{ClassName(config, kModelClass)});
  BertConfig full = WithFeedForward(config);
  TypeOf(config.model_type).type.write(keys, full);
  Json json = std::move(keys).Finish();
  WEFT_RETURN_IF_ERROR(CheckReadBack(config.model_type, config, ConfigFromJson<BertConfig>(json)));
  return json;
}

}  // namespace weft
