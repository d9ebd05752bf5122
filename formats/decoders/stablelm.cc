// StableLM 2 (Stability AI, 2024): a Llama with LayerNorm, whose rotary positions turn a part of the features.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config, "hidden_act", "layer_norm_eps");
  ListRotary(keys, config, {.part = "partial_rotary_factor", .usual_part = 0.25});
  bool bias = config.attention.projection_bias.value_or(config.bias);
  keys.Field("use_qkv_bias", bias);
  config.attention.projection_bias = bias;
  bool parallel = config.residual == ResidualForm::kSharedNorm;
  keys.Field("use_parallel_residual", parallel);
  if (parallel) config.residual = ResidualForm::kSharedNorm;
  keys.Only("qk_layernorm", false);  // with one gain for each head
  keys.Only("hidden_dropout", 0);    // of the feed-forward layers alone
}

GptConfig Defaults() {
  GptConfig config = LlamaDefaults();
  config.vocabulary = 50304;
  config.context = 4096;
  config.width = 2560;
  config.feed_forward = 6912;
  config.norm = {.epsilon = 1e-5};
  config.attention.key_value_heads = 32;
  return config;
}

}  // namespace

constexpr DecoderFamily kStableLmDecoder = {.model_type = "stablelm",
                                            .classes = {"StableLmForCausalLM"},
                                            .defaults = Defaults,
                                            .read = List<KeyReader>,
                                            .write = List<KeyWriter>};

}  // namespace weft
