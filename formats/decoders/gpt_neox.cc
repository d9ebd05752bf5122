// GPT-NeoX and Pythia (Black et al., 2022; Biderman et al., 2023): parallel layers, and rotary positions that turn a
// part of the features. The rows of one tensor are the query, the key and the value of the first head, then of the
// second.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListSizes(keys, config);
  keys.Field("intermediate_size", config.feed_forward);
  keys.Choice("hidden_act", kActivations, config.activation);
  keys.Field("hidden_dropout", config.dropout);
  keys.Field("attention_dropout", config.attention_dropout, config.dropout);
  keys.Field("layer_norm_eps", config.norm.epsilon);
  keys.Field("tie_word_embeddings", config.tied_head);
  ListRotary(keys, config, {.theta = "rotary_emb_base", .part = "rotary_pct", .usual_part = 0.25});
  ListAttentionBias(keys, config);
  bool parallel = config.residual == ResidualForm::kParallel;
  keys.Field("use_parallel_residual", parallel);
  if constexpr (std::is_same_v<Keys, KeyReader>) {
    if (keys.IsNull("use_parallel_residual")) keys.Refuse("use_parallel_residual", "true or false");
  }
  config.residual = parallel ? ResidualForm::kParallel : ResidualForm::kSequential;
  keys.Harmless({"classifier_dropout"});  // of a class that no GPT here is
}

GptConfig Defaults() {
  GptConfig config = LayerNormDefaults();
  config.vocabulary = 50432;
  config.layers = 44;
  config.heads = 64;
  config.width = 6144;
  config.feed_forward = 24576;
  config.activation = Activation::kGelu;
  config.embedding_dropout = std::nullopt;
  config.residual = ResidualForm::kParallel;
  return config;
}

constexpr LayerName kLayers[] = {
    {"gpt_neox.embed_in", "model.embed_tokens"},
    {"gpt_neox.layers.#.input_layernorm", "model.layers.#.input_layernorm"},
    {"gpt_neox.layers.#.attention.dense", "model.layers.#.self_attn.o_proj"},
    {"gpt_neox.layers.#.post_attention_layernorm", "model.layers.#.post_attention_layernorm"},
    {"gpt_neox.layers.#.mlp.dense_h_to_4h", "model.layers.#.mlp.up_proj"},
    {"gpt_neox.layers.#.mlp.dense_4h_to_h", "model.layers.#.mlp.down_proj"},
    {"gpt_neox.final_layer_norm", "model.norm"},
    {"embed_out", "lm_head"}};

}  // namespace

constexpr DecoderFamily kGptNeoxDecoder = {.model_type = "gpt_neox",
                                           .classes = {"GPTNeoXForCausalLM"},
                                           .defaults = Defaults,
                                           .read = List<KeyReader>,
                                           .write = List<KeyWriter>,
                                           .layers = kLayers,
                                           .fused_layer = "gpt_neox.layers.#.attention.query_key_value"};

}  // namespace weft
