// Families with LayerNorm, no gates and Llama's names within Weft: GPT-NeoX, Phi, Falcon, BLOOM and OPT.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

// GPT-NeoX and Pythia (Black et al., 2022; Biderman et al., 2023): parallel layers, and rotary positions that turn a
// part of the features. The rows of one tensor are the query, the key and the value of the first head, then of the
// second.
void ListGptNeox(Keys& keys, GptConfig& config) {
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
  keys.NotNull({"use_parallel_residual"}, "true or false");
  config.residual = parallel ? ResidualForm::kParallel : ResidualForm::kSequential;
  keys.Harmless({"classifier_dropout"});  // of a class that no GPT here is
}

GptConfig UsualGptNeox() {
  GptConfig config =
      LayerNormDefaults({.vocabulary = 50432, .layers = 44, .heads = 64, .width = 6144, .feed_forward = 24576});
  config.activation = Activation::kGelu;
  config.embedding_dropout = std::nullopt;
  config.residual = ResidualForm::kParallel;
  return config;
}

constexpr LayerName kGptNeoxLayers[] = {
    {"gpt_neox.embed_in", "model.embed_tokens"},
    {"gpt_neox.layers.#.input_layernorm", "model.layers.#.input_layernorm"},
    {"gpt_neox.layers.#.attention.dense", "model.layers.#.self_attn.o_proj"},
    {"gpt_neox.layers.#.post_attention_layernorm", "model.layers.#.post_attention_layernorm"},
    {"gpt_neox.layers.#.mlp.dense_h_to_4h", "model.layers.#.mlp.up_proj"},
    {"gpt_neox.layers.#.mlp.dense_4h_to_h", "model.layers.#.mlp.down_proj"},
    {"gpt_neox.final_layer_norm", "model.norm"},
    {"embed_out", "lm_head"}};

// Phi-1 to Phi-2 (Microsoft, 2023): parallel layers with one norm for both, rotary positions that turn a part of the
// features, and biases in all layers and the head.
void ListPhi(Keys& keys, GptConfig& config) {
  keys.Field("resid_pdrop", config.dropout);
  keys.Field("embd_pdrop", config.embedding_dropout, config.dropout);
  ListLlamaKeys(keys, config, "hidden_act", "layer_norm_eps");
  ListRotary(keys, config, {.part = "partial_rotary_factor", .usual_part = 0.5});
  bool norm = config.attention.query_key_norm == QueryKeyNorm::kHead;
  keys.Field("qk_layernorm", norm);
  if (norm) config.attention.query_key_norm = QueryKeyNorm::kHead;
}

GptConfig UsualPhi() {
  GptConfig config = LayerNormDefaults({.vocabulary = 51200, .layers = 24, .width = 2048, .feed_forward = 8192});
  config.head_bias = true;
  config.residual = ResidualForm::kSharedNorm;
  return config;
}

constexpr LayerName kPhiLayers[] = {{"#.self_attn.dense", "#.self_attn.o_proj"},
                                    {"#.self_attn.q_layernorm", "#.self_attn.q_norm"},
                                    {"#.self_attn.k_layernorm", "#.self_attn.k_norm"},
                                    {"#.mlp.fc1", "#.mlp.up_proj"},
                                    {"#.mlp.fc2", "#.mlp.down_proj"},
                                    {"model.final_layernorm", "model.norm"}};

// Lists Falcon's keys that say which norms a block has and how many heads share keys and values.
void ListArchitecture(Keys& keys, GptConfig& config) {
  int64_t& groups = config.attention.key_value_heads;
  bool parallel = config.residual != ResidualForm::kSequential, one = groups == 1;
  bool grouped = config.residual == ResidualForm::kParallel || (parallel && !one && groups != config.heads);
  int64_t norms = config.residual == ResidualForm::kParallel ? 2 : 1, own = groups;
  if (keys.reading()) norms = own = 0;
  keys.Field("new_decoder_architecture", grouped);
  keys.Field("parallel_attn", parallel);
  keys.Field("multi_query", one);
  keys.SizeOrNull("num_kv_heads", own);
  keys.SizeOrNull("num_ln_in_parallel_attn", norms);
  if (!keys.reading()) return;
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

// Falcon (Almazrouei et al., 2023): parallel layers, and keys and values that all heads or groups of heads share.
// new_decoder_architecture has a norm for each of both layers, or groups of heads. The rows of one tensor are the
// queries of a group, its keys and its values.
void ListFalcon(Keys& keys, GptConfig& config) {
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

GptConfig UsualFalcon() {
  GptConfig config = LayerNormDefaults({.vocabulary = 65024, .heads = 71, .width = 4544, .key_value_heads = 1});
  config.activation = Activation::kGelu;
  config.tied_head = true;
  config.bias = false;
  config.residual = ResidualForm::kSharedNorm;
  return config;
}

// The layers of Falcon, then the norms of a Falcon whose layers are not parallel, then what BLOOM has besides.
constexpr LayerName kBloomLayers[] = {
    {"transformer.word_embeddings", "model.embed_tokens"},
    {"transformer.h.#.self_attention.dense", "model.layers.#.self_attn.o_proj"},
    {"transformer.h.#.mlp.dense_h_to_4h", "model.layers.#.mlp.up_proj"},
    {"transformer.h.#.mlp.dense_4h_to_h", "model.layers.#.mlp.down_proj"},
    {"transformer.ln_f", "model.norm"},
    {"transformer.h.#.input_layernorm", "model.layers.#.input_layernorm"},
    {"transformer.h.#.post_attention_layernorm", "model.layers.#.post_attention_layernorm"},
    {"transformer.word_embeddings_layernorm", "model.embed_norm"}};
constexpr absl::Span<const LayerName> kFalconLayers(kBloomLayers, 5), kNorms(&kBloomLayers[5], 2);
constexpr LayerName kParallelNorms[] = {{"transformer.h.#.ln_attn", "model.layers.#.input_layernorm"},
                                        {"transformer.h.#.ln_mlp", "model.layers.#.post_attention_layernorm"}};

std::vector<Weights::Rule> FalconRules(const GptConfig& config) {
  return LayerRules({config.residual == ResidualForm::kParallel ? kParallelNorms : kNorms});
}

// BLOOM (BigScience, 2022): ALiBi in place of positions, and a norm of the embeddings. Its tensor of queries, keys and
// values is as GPT-NeoX's.
void ListBloom(Keys& keys, GptConfig& config) {
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
  if (keys.reading()) {
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

GptConfig UsualBloom() {
  GptConfig config = LayerNormDefaults({.vocabulary = 250880, .layers = 2, .heads = 8, .width = 64});
  config.tied_head = config.embedding_norm = true;
  config.attention = {.distance_bias = DistanceBias::kAlibi};
  return config;
}

// OPT (Zhang et al., 2022): learned positions that begin with 2, as fairseq numbers them.
void ListOpt(Keys& keys, GptConfig& config) {
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

GptConfig UsualOpt() {
  GptConfig config =
      LayerNormDefaults({.vocabulary = 50272, .layers = 12, .heads = 12, .width = 768, .feed_forward = 3072});
  config.dropout = 0.1;
  config.activation = Activation::kRelu;
  config.tied_head = true;
  config.first_position = 2;
  config.attention = {};
  return config;
}

constexpr LayerName kOptLayers[] = {
    {"model.decoder.embed_tokens", "model.embed_tokens"},
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

constexpr DecoderFamily kGptNeoxDecoder = {"gpt_neox",     {"GPTNeoXForCausalLM"},
                                           UsualGptNeox,   ListGptNeox,
                                           kGptNeoxLayers, "gpt_neox.layers.#.attention.query_key_value"};
constexpr DecoderFamily kPhiDecoder = {"phi", {"PhiForCausalLM"}, UsualPhi, ListPhi, kPhiLayers};
constexpr DecoderFamily kFalconDecoder = {.model_type = "falcon",
                                          .classes = {"FalconForCausalLM"},
                                          .defaults = UsualFalcon,
                                          .list = ListFalcon,
                                          .layers = kFalconLayers,
                                          .fused_layer = "transformer.h.#.self_attention.query_key_value",
                                          .rules = FalconRules};
constexpr DecoderFamily kBloomDecoder = {"bloom",   {"BloomForCausalLM"}, UsualBloom,
                                         ListBloom, kBloomLayers,         kFalconDecoder.fused_layer};
constexpr DecoderFamily kOptDecoder = {"opt", {"OPTForCausalLM"}, UsualOpt, ListOpt, kOptLayers};

}  // namespace weft
