// ALBERT (Lan et al., 2020) is a BERT whose layers share one set of weights, and whose embeddings are narrower than the
// model. Its other pre-training task is the order of two sentences.
#include "weft/formats/all_bert_types.h"

namespace weft {
namespace {

template <class Keys>
void ListAlbert(Keys& keys, BertConfig& config) {
  ListBertKeys(keys, config);
  keys.Field("embedding_size", config.embedding_width);
  ListTables(keys, config);
  keys.Field("classifier_dropout_prob", config.classifier_dropout, config.dropout);
  keys.Only("num_hidden_groups", 1);
  keys.Only("inner_group_num", 1);
}

void ReadAlbert(KeyReader& keys, BertConfig& config) {
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
  ListAlbert(keys, config);
  config.next_sentence_dropout = config.classifier_dropout.value_or(config.dropout);
  if (keys.IsNull("num_hidden_layers")) keys.Refuse("num_hidden_layers", "a whole number");
  if (config.embedding_width < 1) keys.Refuse("embedding_size", "a number above 0");
  // Google's own checkpoints have these keys, but no code reads them.
  keys.Harmless(
      {"down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks", "position_embedding_type"});
}

constexpr absl::string_view kClasses[] = {kModelClass,  kTrainingClass, kMaskedClass, kTextClass,
                                          kTokensClass, kAnswerClass,   kChoiceClass};
constexpr LayerName kLayers[] = {
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
constexpr LayerName kHeads[] = {{"predictions.dense", "cls.predictions.transform.dense"},
                                {"predictions.LayerNorm", "cls.predictions.transform.LayerNorm"},
                                {"predictions.decoder", "cls.predictions.decoder"},
                                {"predictions", "cls.predictions"},
                                {"sop_classifier.classifier", "cls.seq_relationship"}};

}  // namespace

constexpr BertType kAlbertType = {.prefix = "albert.",
                                  .read = ReadAlbert,
                                  .write = ListAlbert<KeyWriter>,
                                  .classes = kClasses,
                                  .layers = kLayers,
                                  .heads = kHeads};

}  // namespace weft
