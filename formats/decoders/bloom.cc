// BLOOM (BigScience, 2022): ALiBi in place of positions, and a norm of the embeddings. The rows of one tensor are the
// query, the key and the value of the first head, then of the second.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("seq_length", config.context);  // of the training; transformers does not read it
  keys.Field("hidden_size", config.width);
  keys.Field("n_layer", config.layers);
  keys.Field("n_head", config.heads);
  keys.Field("layer_norm_epsilon", config.norm.epsilon);
  keys.Field("hidden_dropout", config.dropout);
  keys.Field("attention_dropout", config.attention_dropout, config.dropout);
  keys.Field("tie_word_embeddings", config.tied_head);
  keys.Only("apply_residual_connection_post_layernorm", false);
  if constexpr (std::is_same_v<Keys, KeyReader>) {
    keys.Field("n_embed", config.width);
    for (const char* const key : {"n_head", "num_attention_heads"}) {
      keys.Field(key, config.heads);
      if (keys.IsNull(key) || config.heads < 1 || (config.heads & (config.heads - 1)) != 0)
        keys.Refuse(key, "a power of 2");
    }
  }
  // Ways to compute the same, and a number that the tokenizer has.
  keys.Harmless({"pretraining_tp", "slow_but_exact", "attention_softmax_in_fp32", "bias_dropout_fusion",
                 "masked_softmax_fusion", "skip_bias_add", "skip_bias_add_qkv", "offset_alibi", "unk_token_id"});
}

GptConfig Defaults() {
  GptConfig config = LayerNormDefaults();
  config.vocabulary = 250880;
  config.layers = 2;
  config.heads = 8;
  config.width = 64;
  config.tied_head = config.embedding_norm = true;
  config.attention = {.distance_bias = DistanceBias::kAlibi};
  return config;
}

constexpr LayerName kLayers[] = {
    {"transformer.word_embeddings", "model.embed_tokens"},
    {"transformer.word_embeddings_layernorm", "model.embed_norm"},
    {"transformer.h.#.input_layernorm", "model.layers.#.input_layernorm"},
    {"transformer.h.#.self_attention.dense", "model.layers.#.self_attn.o_proj"},
    {"transformer.h.#.post_attention_layernorm", "model.layers.#.post_attention_layernorm"},
    {"transformer.h.#.mlp.dense_h_to_4h", "model.layers.#.mlp.up_proj"},
    {"transformer.h.#.mlp.dense_4h_to_h", "model.layers.#.mlp.down_proj"},
    {"transformer.ln_f", "model.norm"}};

}  // namespace

constexpr DecoderFamily kBloomDecoder = {.model_type = "bloom",
                                         .classes = {"BloomForCausalLM"},
                                         .defaults = Defaults,
                                         .read = List<KeyReader>,
                                         .write = List<KeyWriter>,
                                         .layers = kLayers,
                                         .fused_layer = "transformer.h.#.self_attention.query_key_value"};

}  // namespace weft
