// Falcon (Almazrouei et al., 2023): parallel layers, and keys and values that all heads or groups of heads share.
// new_decoder_architecture has a norm for each of both layers, or groups of heads. The rows of one tensor are the
// queries of a group, its keys and its values.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

// Lists the keys that say which norms a block has and how many heads share keys and values.
template <class Keys>
void ListArchitecture(Keys& keys, GptConfig& config) {
  int64_t& groups = config.attention.key_value_heads;
  bool parallel = config.residual != ResidualForm::kSequential, one = groups == 1;
  bool grouped = config.residual == ResidualForm::kParallel || (parallel && !one && groups != config.heads);
  int64_t norms = config.residual == ResidualForm::kParallel ? 2 : 1, own = groups;
  if constexpr (std::is_same_v<Keys, KeyReader>) norms = own = 0;
  keys.Field("new_decoder_architecture", grouped);
  keys.Field("parallel_attn", parallel);
  keys.Field("multi_query", one);
  keys.SizeOrNull("num_kv_heads", own);
  keys.SizeOrNull("num_ln_in_parallel_attn", norms);
  if constexpr (std::is_same_v<Keys, KeyReader>) {
    if (grouped && !parallel) keys.Refuse("parallel_attn", "true with new_decoder_architecture");
    if (norms < 0 || norms > (grouped ? 2 : 1)) {
      keys.Refuse("num_ln_in_parallel_attn", "1, or 2 with new_decoder_architecture");
    }
    if (!grouped && !one && own != 0 && own != config.heads) keys.Refuse("num_kv_heads", "num_attention_heads");
    groups = one && !grouped ? 1 : own;
    config.residual = !parallel               ? ResidualForm::kSequential
                      : grouped && norms != 1 ? ResidualForm::kParallel
                                              : ResidualForm::kSharedNorm;
  }
}

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListSizes(keys, config);
  keys.SizeOrNull("ffn_hidden_size", config.feed_forward);
  keys.Choice("activation", kActivations, config.activation);
  keys.Field("layer_norm_epsilon", config.norm.epsilon);
  keys.Field("tie_word_embeddings", config.tied_head);
  keys.Field("bias", config.bias);
  ListRotary(keys, config);
  ListArchitecture(keys, config);
  keys.Only("alibi", false);          // with scaled slopes in bf16
  keys.Only("hidden_dropout", 0);     // of the sum of both layers' results
  keys.Only("attention_dropout", 0);  // also of attention's result, if the layers are not parallel
  keys.Harmless({"ff_factor", "apply_residual_connection_post_layernorm"});  // which no version of transformers reads
}

GptConfig Defaults() {
  GptConfig config = LayerNormDefaults();
  config.vocabulary = 65024;
  config.heads = 71;
  config.width = 4544;
  config.activation = Activation::kGelu;
  config.tied_head = true;
  config.bias = false;
  config.residual = ResidualForm::kSharedNorm;
  config.attention.key_value_heads = 1;
  return config;
}

constexpr LayerName kLayers[] = {{"transformer.word_embeddings", "model.embed_tokens"},
                                 {"transformer.h.#.self_attention.dense", "model.layers.#.self_attn.o_proj"},
                                 {"transformer.h.#.mlp.dense_h_to_4h", "model.layers.#.mlp.up_proj"},
                                 {"transformer.h.#.mlp.dense_4h_to_h", "model.layers.#.mlp.down_proj"},
                                 {"transformer.ln_f", "model.norm"}};
constexpr LayerName kNorms[] = {
    {"transformer.h.#.input_layernorm", "model.layers.#.input_layernorm"},
    {"transformer.h.#.post_attention_layernorm", "model.layers.#.post_attention_layernorm"}};
constexpr LayerName kParallelNorms[] = {{"transformer.h.#.ln_attn", "model.layers.#.input_layernorm"},
                                        {"transformer.h.#.ln_mlp", "model.layers.#.post_attention_layernorm"}};

std::vector<Weights::Rule> Rules(const GptConfig& config) {
  std::vector<Weights::Rule> rules;
  AppendRules(config.residual == ResidualForm::kParallel ? kParallelNorms : kNorms, &rules);
  return rules;
}

}  // namespace

constexpr DecoderFamily kFalconDecoder = {.model_type = "falcon",
                                          .classes = {"FalconForCausalLM"},
                                          .defaults = Defaults,
                                          .read = List<KeyReader>,
                                          .write = List<KeyWriter>,
                                          .layers = kLayers,
                                          .fused_layer = "transformer.h.#.self_attention.query_key_value",
                                          .rules = Rules};

}  // namespace weft
