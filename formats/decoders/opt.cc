// OPT (Zhang et al., 2022): learned positions that begin with 2, as fairseq numbers them.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListSizes(keys, config);
  keys.Field("ffn_dim", config.feed_forward);
  keys.Choice("activation_function", kActivations, config.activation);
  keys.Field("dropout", config.dropout);
  keys.Field("attention_dropout", config.attention_dropout, config.dropout);
  keys.Field("tie_word_embeddings", config.tied_head);
  keys.Field("do_layer_norm_before", config.pre_norm);
  keys.Field("enable_bias", config.bias);
  keys.Only("word_embed_proj_dim", config.width);
  keys.Only("_remove_final_layer_norm", false);
  keys.Only("layer_norm_elementwise_affine", true);
  keys.Only("layerdrop", 0);
  keys.Harmless({"init_std", "activation_dropout"});  // initial values; transformers does not read the second
}

GptConfig Defaults() {
  GptConfig config = LayerNormDefaults();
  config.vocabulary = 50272;
  config.layers = config.heads = 12;
  config.width = 768;
  config.feed_forward = 3072;
  config.dropout = 0.1;
  config.activation = Activation::kRelu;
  config.tied_head = true;
  config.first_position = 2;
  config.attention = {};
  return config;
}

constexpr LayerName kLayers[] = {{"model.decoder.embed_tokens", "model.embed_tokens"},
                                 {"model.decoder.embed_positions", "wpe"},
                                 {"model.decoder.layers.#.self_attn.q_proj", "model.layers.#.self_attn.q_proj"},
                                 {"model.decoder.layers.#.self_attn.k_proj", "model.layers.#.self_attn.k_proj"},
                                 {"model.decoder.layers.#.self_attn.v_proj", "model.layers.#.self_attn.v_proj"},
                                 {"model.decoder.layers.#.self_attn.out_proj", "model.layers.#.self_attn.o_proj"},
                                 {"model.decoder.layers.#.self_attn_layer_norm", "model.layers.#.input_layernorm"},
                                 {"model.decoder.layers.#.fc1", "model.layers.#.mlp.up_proj"},
                                 {"model.decoder.layers.#.fc2", "model.layers.#.mlp.down_proj"},
                                 {"model.decoder.layers.#.final_layer_norm", "model.layers.#.post_attention_layernorm"},
                                 {"model.decoder.final_layer_norm", "model.norm"}};

}  // namespace

constexpr DecoderFamily kOptDecoder = {.model_type = "opt",
                                       .classes = {"OPTForCausalLM"},
                                       .defaults = Defaults,
                                       .read = List<KeyReader>,
                                       .write = List<KeyWriter>,
                                       .layers = kLayers};

}  // namespace weft
