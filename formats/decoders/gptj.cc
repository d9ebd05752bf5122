// GPT-J (Wang and Komatsuzaki, 2021): parallel layers with one norm for both, and rotary positions that turn
// neighbouring features. The head has a bias.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListGpt2Keys(keys, config);
  keys.Harmless({"rotary", "scale_attn_weights", "n_ctx"});  // which older versions wrote, and no version reads
  int64_t& turned = config.attention.rotary_width;
  if (turned == 0) turned = config.attention.key_width;
  keys.Field("rotary_dim", turned);
  if constexpr (std::is_same_v<Keys, KeyReader>) {
    if (turned == 0) keys.Refuse("rotary_dim", "an even number above 0");
  }
}

GptConfig Defaults() {
  GptConfig config = LayerNormDefaults();
  config.vocabulary = 50400;
  config.layers = 28;
  config.heads = 16;
  config.head_bias = true;
  config.residual = ResidualForm::kSharedNorm;
  config.attention.rotary = RotaryLayout::kPairs;
  config.attention.rotary_width = 64;
  config.attention.projection_bias = config.attention.output_bias = false;
  return config;
}

constexpr LayerName kLayers[] = {{"transformer.wte", "model.embed_tokens"},
                                 {"transformer.h.#.ln_1", "model.layers.#.input_layernorm"},
                                 {"transformer.h.#.attn.q_proj", "model.layers.#.self_attn.q_proj"},
                                 {"transformer.h.#.attn.k_proj", "model.layers.#.self_attn.k_proj"},
                                 {"transformer.h.#.attn.v_proj", "model.layers.#.self_attn.v_proj"},
                                 {"transformer.h.#.attn.out_proj", "model.layers.#.self_attn.o_proj"},
                                 {"transformer.h.#.mlp.fc_in", "model.layers.#.mlp.up_proj"},
                                 {"transformer.h.#.mlp.fc_out", "model.layers.#.mlp.down_proj"},
                                 {"transformer.ln_f", "model.norm"}};

}  // namespace

constexpr DecoderFamily kGptJDecoder = {.model_type = "gptj",
                                        .classes = {"GPTJForCausalLM"},
                                        .defaults = Defaults,
                                        .read = List<KeyReader>,
                                        .write = List<KeyWriter>,
                                        .layers = kLayers};

}  // namespace weft
