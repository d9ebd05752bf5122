// GPT-2 (Radford et al., 2019), and the families that have its keys: minGPT's gpt-nano and GPT-J.
#include "weft/formats/all_decoders.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

// Lists the keys that GPT-2 and GPT-J share.
void ListShared(Keys& keys, GptConfig& config) {
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("n_positions", config.context);
  keys.Field("n_embd", config.width);
  keys.Field("n_layer", config.layers);
  keys.Field("n_head", config.heads);
  keys.SizeOrNull("n_inner", config.feed_forward);
  keys.Choice("activation_function", kActivations, config.activation);
  keys.Field("resid_pdrop", config.dropout);
  keys.Field("embd_pdrop", config.embedding_dropout, config.dropout);
  keys.Field("attn_pdrop", config.attention_dropout, config.dropout);
  keys.Field("layer_norm_epsilon", config.norm.epsilon);
  keys.Field("tie_word_embeddings", config.tied_head);
  // Of a head that no GPT here has.
  keys.Harmless(
      {"summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"});
}

void ListGpt2(Keys& keys, GptConfig& config) {
  ListShared(keys, config);
  keys.Only("scale_attn_weights", true);
  keys.Only("scale_attn_by_inverse_layer_idx", false);
  keys.Only("position_embedding_type", "absolute");
  // n_ctx was the size of the causal mask. reorder_and_upcast_attn asks for attention in f32, which is always so here.
  keys.Harmless({"n_ctx", "reorder_and_upcast_attn", "n_special", "predict_special_tokens"});
}

void ListGptNano(Keys& keys, GptConfig& config) {
  config.tied_head = false;
  keys.Field("block_size", config.context);
  ListGpt2(keys, config);
}

GptConfig UsualGpt2() {
  GptConfig config;
  config.dropout = 0.1;
  config.embedding_dropout = config.attention_dropout = 0.1;
  return config;
}

// GPT-J (Wang and Komatsuzaki, 2021): parallel layers with one norm for both, and rotary positions that turn
// neighbouring features. The head has a bias.
void ListGptJ(Keys& keys, GptConfig& config) {
  ListShared(keys, config);
  keys.Harmless({"rotary", "scale_attn_weights", "n_ctx"});  // which older versions wrote, and no version reads
  int64_t& turned = config.attention.rotary_width;
  if (turned == 0) turned = config.attention.key_width;
  keys.Field("rotary_dim", turned);
  if (turned == 0) keys.Refuse("rotary_dim", "an even number above 0");
}

GptConfig UsualGptJ() {
  GptConfig config = LayerNormDefaults({.vocabulary = 50400, .layers = 28, .heads = 16});
  config.head_bias = true;
  config.residual = ResidualForm::kSharedNorm;
  config.attention.rotary = RotaryLayout::kPairs;
  config.attention.rotary_width = 64;
  config.attention.projection_bias = config.attention.output_bias = false;
  return config;
}

constexpr LayerName kGptJLayers[] = {{"transformer.wte", "model.embed_tokens"},
                                     {"transformer.h.#.ln_1", "model.layers.#.input_layernorm"},
                                     {"transformer.h.#.attn.q_proj", "model.layers.#.self_attn.q_proj"},
                                     {"transformer.h.#.attn.k_proj", "model.layers.#.self_attn.k_proj"},
                                     {"transformer.h.#.attn.v_proj", "model.layers.#.self_attn.v_proj"},
                                     {"transformer.h.#.attn.out_proj", "model.layers.#.self_attn.o_proj"},
                                     {"transformer.h.#.mlp.fc_in", "model.layers.#.mlp.up_proj"},
                                     {"transformer.h.#.mlp.fc_out", "model.layers.#.mlp.down_proj"},
                                     {"transformer.ln_f", "model.norm"}};

}  // namespace

constexpr DecoderFamily kGpt2Decoder = {.model_type = "gpt2",
                                        .classes = {"GPT2LMHeadModel", "GPT2Model"},
                                        .defaults = UsualGpt2,
                                        .list = ListGpt2,
                                        .rules = [](const GptConfig&) { return Gpt2Transposes(); }};
constexpr DecoderFamily kGptNanoDecoder = {.model_type = "gpt-nano",
                                           .classes = {"GPT2LMHeadModel", "GPT2Model"},
                                           .defaults = UsualGpt2,
                                           .list = ListGptNano,
                                           .only_read = true};
constexpr DecoderFamily kGptJDecoder = {"gptj", {"GPTJForCausalLM"}, UsualGptJ, ListGptJ, kGptJLayers};

}  // namespace weft
