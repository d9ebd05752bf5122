// This file has the encoders of BERT's kind, their table, and the functions that read and write their configurations
// and the names of their weights.
#include "weft/formats/bert_type.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"
#include "weft/formats/config_json.h"
#include "weft/models/validate.h"

namespace weft {
namespace {

// The endings of the names of the classes that several types have.
constexpr absl::string_view kUsualClasses[] = {kModelClass,  kMaskedClass, kTextClass,
                                               kTokensClass, kAnswerClass, kChoiceClass};
constexpr LayerName kRobertaHeads[] = {{"lm_head.dense", "cls.predictions.transform.dense"},
                                       {"lm_head.layer_norm", "cls.predictions.transform.LayerNorm"},
                                       {"lm_head.decoder", "cls.predictions.decoder"},
                                       {"lm_head", "cls.predictions"}};
constexpr LayerName kRobertaClassifier[] = {{"classifier.dense", "pooler.dense"},
                                            {"classifier.out_proj", "classifier"}};

// Lists the keys that most types share.
void ListSharedKeys(Keys& keys, BertConfig& config) {
  keys.Field("vocab_size", config.vocabulary);
  ListEncoder(keys, config);
  keys.Field("attention_probs_dropout_prob", config.attention_dropout, config.dropout);
  keys.Field("layer_norm_eps", config.norm.epsilon);
  keys.Only("is_decoder", false);
  keys.Only("tie_word_embeddings", true);
}

// Lists the keys of tables of positions and segments. The first position is config.padding + 1 or, without it, 0.
void ListTables(Keys& keys, BertConfig& config) {
  const int64_t first = config.padding ? *config.padding + 1 : 0;
  int64_t positions = config.context + first;
  keys.Field("max_position_embeddings", positions);
  config.context = std::max<int64_t>(positions, 0) - first;
  if (config.segments > 0) keys.Field("type_vocab_size", config.segments);
}

// Lists the key of a classifier's dropout, which is written only if it differs from `dropout`.
void ListClassifierDropout(Keys& keys, BertConfig& config) {
  if (keys.reading() || config.classifier_dropout) {
    keys.Field("classifier_dropout", config.classifier_dropout, config.dropout);
  }
}

void ListBert(Keys& keys, BertConfig& config) {
  ListSharedKeys(keys, config);
  ListTables(keys, config);
  ListClassifierDropout(keys, config);
  keys.Write("position_embedding_type", "absolute");
  if (keys.reading() || config.classifier_pooling != Pooling::kFirst) {  // which only newer encoders have
    keys.Choice("classifier_pooling", Choices<Pooling>(kPoolings), config.classifier_pooling);
  }
  // Google's own checkpoints have these keys, but no code reads them. Nor does transformers 5 read the last: tensors of
  // relative positions, which it ignores, are refused.
  keys.Harmless({"directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                 "pooler_size_per_head", "pooler_type", "position_embedding_type"});
}

constexpr absl::string_view kBertClasses[] = {kModelClass, kTrainingClass, kMaskedClass, kNextClass,
                                              kTextClass,  kTokensClass,   kAnswerClass, kChoiceClass};
constexpr BertType kBertType = {.prefix = "bert.", .list = ListBert, .classes = kBertClasses};

// RoBERTa (Liu et al., 2019) is a BERT without segments whose positions begin after the number of its padding token.
// XLM-R and CamemBERT have the same keys and names.
void ListRoberta(Keys& keys, BertConfig& config) {
  if (keys.reading()) {
    config.segment_inputs = false;
    config.masked_activation = Activation::kGelu;
  }
  const Json* const number = keys.Find("pad_token_id");
  if (keys.IsNull("pad_token_id") || (number != nullptr && !(*number >= 0 && *number <= kMaxPositions))) {
    return keys.Refuse("pad_token_id", absl::StrCat("0 .. ", kMaxPositions));
  }
  int64_t padding = config.padding.value_or(1);
  keys.Field("pad_token_id", padding);
  config.padding = padding;
  ListSharedKeys(keys, config);
  ListTables(keys, config);
  ListClassifierDropout(keys, config);
  keys.Harmless({"position_embedding_type"});
}

constexpr BertType kRobertaType = {"roberta.", ListRoberta, kUsualClasses, {}, kRobertaHeads, kRobertaClassifier};

// DistilBERT (Sanh et al., 2019) is a BERT without segments and pooler. Its classifier of texts has a layer with ReLU.
void ListDistilBert(Keys& keys, BertConfig& config) {
  if (keys.reading()) {
    config.layers = 6;
    config.segments = 0;
    config.segment_inputs = false;
    config.classifier_dropout = 0.2;
    config.pooler_activation = Activation::kRelu;
  }
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("max_position_embeddings", config.context);
  keys.Field("n_layers", config.layers);
  keys.Field("n_heads", config.heads);
  keys.Field("dim", config.width);
  keys.Field("hidden_dim", config.feed_forward);
  keys.Choice("activation", kActivations, config.activation);
  keys.Field("dropout", config.dropout);
  keys.Field("attention_dropout", config.attention_dropout, config.dropout);
  keys.Field("seq_classif_dropout", config.classifier_dropout, config.dropout);
  keys.Only("tie_word_embeddings", true);
  keys.Harmless({"sinusoidal_pos_embds", "qa_dropout"});  // initial values, which weights replace; training alone
}

constexpr LayerName kDistilBertLayers[] = {
    {"transformer.layer.#.attention.q_lin", "encoder.layer.#.attention.self.query"},
    {"transformer.layer.#.attention.k_lin", "encoder.layer.#.attention.self.key"},
    {"transformer.layer.#.attention.v_lin", "encoder.layer.#.attention.self.value"},
    {"transformer.layer.#.attention.out_lin", "encoder.layer.#.attention.output.dense"},
    {"transformer.layer.#.sa_layer_norm", "encoder.layer.#.attention.output.LayerNorm"},
    {"transformer.layer.#.ffn.lin1", "encoder.layer.#.intermediate.dense"},
    {"transformer.layer.#.ffn.lin2", "encoder.layer.#.output.dense"},
    {"transformer.layer.#.output_layer_norm", "encoder.layer.#.output.LayerNorm"}};
constexpr LayerName kDistilBertHeads[] = {{"vocab_transform", "cls.predictions.transform.dense"},
                                          {"vocab_layer_norm", "cls.predictions.transform.LayerNorm"},
                                          {"vocab_projector", "cls.predictions"},
                                          {"pre_classifier", "pooler.dense"}};

constexpr BertType kDistilBertType = {"distilbert.", ListDistilBert, kUsualClasses, kDistilBertLayers,
                                      kDistilBertHeads};

// ELECTRA (Clark et al., 2020) has a generator, which guesses masked tokens, and a discriminator, which finds the
// tokens that the generator replaced. Both are BERTs without pooler whose embeddings may be narrower than the model.
void ListElectra(Keys& keys, BertConfig& config) {
  if (keys.reading()) {
    config.embedding_width = 128;
    config.width = 256;
    config.heads = 4;
    config.feed_forward = 1024;
    config.pooler_activation = config.masked_activation = Activation::kGelu;
  }
  ListSharedKeys(keys, config);
  int64_t width = config.embedding_width != 0 ? config.embedding_width : config.width;
  keys.Field("embedding_size", width);
  config.embedding_width = width == config.width ? 0 : width;
  ListTables(keys, config);
  ListClassifierDropout(keys, config);
  keys.NotNull({"num_attention_heads"}, "a whole number");
  // The summary is a layer of a head that no model here has.
  keys.Harmless(
      {"position_embedding_type", "summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"});
}

constexpr absl::string_view kElectraClasses[] = {kModelClass, kTrainingClass, kMaskedClass,
                                                 kTextClass,  kTokensClass,   kAnswerClass};
constexpr LayerName kElectraHeads[] = {{"generator_predictions.dense", "cls.predictions.transform.dense"},
                                       {"generator_predictions.LayerNorm", "cls.predictions.transform.LayerNorm"},
                                       {"generator_lm_head", "cls.predictions"}};
constexpr BertType kElectraType = {"electra.", ListElectra, kElectraClasses, {}, kElectraHeads, kRobertaClassifier};

// MPNet (Song et al., 2020) is a BERT without segments. All layers add the same learnt numbers to their scores, by
// buckets of distances.
void ListMpNet(Keys& keys, BertConfig& config) {
  if (keys.reading()) {
    config.vocabulary = 30527;
    config.segments = 0;
    config.segment_inputs = false;
    config.padding = 1;  // whatever pad_token_id is
    config.positions = PositionKind::kLearned;
    config.attention = {.distance_bias = DistanceBias::kBuckets, .buckets = 32, .max_distance = 128};
    config.shared_distance_bias = true;
    config.masked_activation = Activation::kGelu;
  }
  ListSharedKeys(keys, config);
  ListTables(keys, config);
  keys.Only("relative_attention_num_buckets",
            config.attention.buckets);  // transformers uses the first 32 of any number
}

constexpr LayerName kMpNetLayers[] = {
    {"encoder.relative_attention_bias", "encoder.layer.0.attention.relative_attention_bias"},
    {"encoder.layer.#.attention.attn.q", "encoder.layer.#.attention.self.query"},
    {"encoder.layer.#.attention.attn.k", "encoder.layer.#.attention.self.key"},
    {"encoder.layer.#.attention.attn.v", "encoder.layer.#.attention.self.value"},
    {"encoder.layer.#.attention.attn.o", "encoder.layer.#.attention.output.dense"},
    {"encoder.layer.#.attention.LayerNorm", "encoder.layer.#.attention.output.LayerNorm"}};

constexpr BertType kMpNetType = {"mpnet.", ListMpNet, kUsualClasses, kMpNetLayers, kRobertaHeads, kRobertaClassifier};

// ALBERT (Lan et al., 2020) is a BERT whose layers share one set of weights, and whose embeddings are narrower than the
// model. Its other pre-training task is the order of two sentences.
void ListAlbert(Keys& keys, BertConfig& config) {
  if (keys.reading()) {
    config.vocabulary = 30000;
    config.embedding_width = 128;
    config.width = 4096;
    config.heads = 64;
    config.feed_forward = 16384;
    config.activation = Activation::kGeluTanh;
    config.dropout = 0;
    config.attention_dropout = 0;
    config.classifier_dropout = 0.1;
    config.shared_layers = true;
  }
  ListSharedKeys(keys, config);
  keys.Field("embedding_size", config.embedding_width);
  ListTables(keys, config);
  keys.Field("classifier_dropout_prob", config.classifier_dropout, config.dropout);
  keys.Only("num_hidden_groups", 1);
  keys.Only("inner_group_num", 1);
  config.next_sentence_dropout = config.classifier_dropout.value_or(config.dropout);
  keys.NotNull({"num_hidden_layers"}, "a whole number");
  if (config.embedding_width < 1) keys.Refuse("embedding_size", "a number above 0");
  // Google's own checkpoints have these keys, but no code reads them.
  keys.Harmless(
      {"down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks", "position_embedding_type"});
}

constexpr absl::string_view kAlbertClasses[] = {kModelClass,  kTrainingClass, kMaskedClass, kTextClass,
                                                kTokensClass, kAnswerClass,   kChoiceClass};
constexpr LayerName kAlbertLayers[] = {
    {"encoder.embedding_hidden_mapping_in", "embeddings_project"},
    {"encoder.albert_layer_groups.0.albert_layers.0.attention.query", "encoder.layer.0.attention.self.query"},
    {"encoder.albert_layer_groups.0.albert_layers.0.attention.key", "encoder.layer.0.attention.self.key"},
    {"encoder.albert_layer_groups.0.albert_layers.0.attention.value", "encoder.layer.0.attention.self.value"},
    {"encoder.albert_layer_groups.0.albert_layers.0.attention.dense", "encoder.layer.0.attention.output.dense"},
    {"encoder.albert_layer_groups.0.albert_layers.0.attention.LayerNorm", "encoder.layer.0.attention.output.LayerNorm"},
    {"encoder.albert_layer_groups.0.albert_layers.0.ffn", "encoder.layer.0.intermediate.dense"},
    {"encoder.albert_layer_groups.0.albert_layers.0.ffn_output", "encoder.layer.0.output.dense"},
    {"encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm", "encoder.layer.0.output.LayerNorm"},
    {"pooler", "pooler.dense"}};
constexpr LayerName kAlbertHeads[] = {{"predictions.dense", "cls.predictions.transform.dense"},
                                      {"predictions.LayerNorm", "cls.predictions.transform.LayerNorm"},
                                      {"predictions.decoder", "cls.predictions.decoder"},
                                      {"predictions", "cls.predictions"},
                                      {"sop_classifier.classifier", "cls.seq_relationship"}};

constexpr BertType kAlbertType = {"albert.", ListAlbert, kAlbertClasses, kAlbertLayers, kAlbertHeads};

struct TypeRow {
  absl::string_view name, class_name;  // the model_type, and the beginning of the names of its classes
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
  for (size_t i = 0; i < names.size(); ++i) names[i] = kTypes[i].name;
  return names;
}();

const TypeRow& TypeOf(absl::string_view model_type) {
  const TypeRow* const row = FindRow(kTypes, model_type);
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

std::vector<std::vector<Weights::Rule>> OwnNames(const PublishedBert& bert) {
  const BertType& type = TypeOf(bert.config.model_type).type;
  return {{{absl::StrCat(type.prefix, "#"), {"#"}}},
          {{"embeddings.position_ids", {}}, {"#.gamma", {"#.weight"}}, {"#.beta", {"#.bias"}}},
          LayerRules({type.layers, type.heads, type.classifier})};
}

absl::Status Publish(absl::string_view model_type, bool heads, bool classifier, Weights* weights) {
  const BertType& type = TypeOf(model_type).type;
  const std::string prefix(heads ? type.prefix : "");
  const absl::Span<const LayerName> none, of_classifier = classifier ? type.classifier : none;
  WEFT_RETURN_IF_ERROR(weights->Revert(LayerRules({type.layers, type.heads, of_classifier})));
  std::vector<Weights::Rule> prefixes;
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
  const TypeRow* const row = FindRow(kTypes, config.model_type);
  if (row == nullptr) {
    keys.Refuse("model_type", absl::StrJoin(kModelTypes, ", "));
    return keys.Refused();
  }
  row->type.list(keys, config);
  std::vector<std::string> classes;
  for (const absl::string_view suffix : row->type.classes) classes.push_back(absl::StrCat(row->class_name, suffix));
  ReadUsualKeys(keys, std::vector<absl::string_view>(classes.begin(), classes.end()));
  return Finished(keys, config);
}

absl::StatusOr<Json> ToJson(const BertConfig& config) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  KeyWriter keys(config.model_type, ClassName(config, kModelClass));
  BertConfig full = WithFeedForward(config);
  TypeOf(config.model_type).type.list(keys, full);
  Json json = std::move(keys).Finish();
  WEFT_RETURN_IF_ERROR(CheckReadBack(config.model_type, config, ConfigFromJson<BertConfig>(json)));
  return json;
}

}  // namespace weft
