// DistilBERT (Sanh et al., 2019) is a BERT without segments and pooler. Its classifier of texts has a layer with ReLU.
#include "weft/formats/all_bert_types.h"

namespace weft {
namespace {

template <class Keys>
void ListDistilBert(Keys& keys, BertConfig& config) {
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
}

void ReadDistilBert(KeyReader& keys, BertConfig& config) {
  config.layers = 6;
  config.segments = 0;
  config.segment_inputs = false;
  config.classifier_dropout = 0.2;
  config.pooler_activation = Activation::kRelu;
  ListDistilBert(keys, config);
  keys.Harmless({"sinusoidal_pos_embds", "qa_dropout"});  // initial values, which weights replace; training alone
}

constexpr LayerName kLayers[] = {{"transformer.layer.#.attention.q_lin", "encoder.layer.#.attention.self.query"},
                                 {"transformer.layer.#.attention.k_lin", "encoder.layer.#.attention.self.key"},
                                 {"transformer.layer.#.attention.v_lin", "encoder.layer.#.attention.self.value"},
                                 {"transformer.layer.#.attention.out_lin", "encoder.layer.#.attention.output.dense"},
                                 {"transformer.layer.#.sa_layer_norm", "encoder.layer.#.attention.output.LayerNorm"},
                                 {"transformer.layer.#.ffn.lin1", "encoder.layer.#.intermediate.dense"},
                                 {"transformer.layer.#.ffn.lin2", "encoder.layer.#.output.dense"},
                                 {"transformer.layer.#.output_layer_norm", "encoder.layer.#.output.LayerNorm"}};
constexpr LayerName kHeads[] = {{"vocab_transform", "cls.predictions.transform.dense"},
                                {"vocab_layer_norm", "cls.predictions.transform.LayerNorm"},
                                {"vocab_projector", "cls.predictions"},
                                {"pre_classifier", "pooler.dense"}};

}  // namespace

constexpr BertType kDistilBertType = {.prefix = "distilbert.",
                                      .read = ReadDistilBert,
                                      .write = ListDistilBert<KeyWriter>,
                                      .classes = kUsualClasses,
                                      .layers = kLayers,
                                      .heads = kHeads};

}  // namespace weft
