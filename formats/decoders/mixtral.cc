// Mixtral (Jiang et al., 2024): a Mistral with experts in place of feed-forward layers.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  keys.SizeOrNull("head_dim", config.attention.key_width);
  ListRotary(keys, config);
  ListWindow(keys, config);
  keys.Field("num_local_experts", config.mixture.experts);
  int64_t& used = config.mixture.per_token;
  keys.Field("num_experts_per_tok", used);
  if constexpr (std::is_same_v<Keys, KeyReader>) {
    if (keys.IsNull("num_experts_per_tok") || used < 1 || used > config.mixture.experts) {
      keys.Refuse("num_experts_per_tok", "a number from 1 to num_local_experts");
    }
  }
  // transformers adds the loss only if it also returns the router's logits.
  bool added = config.balance_loss != 0;
  double factor = added ? config.balance_loss : 0.001;
  keys.Field("output_router_logits", added);
  keys.Field("router_aux_loss_coef", factor);
  config.balance_loss = added ? factor : 0;
  keys.Only("router_jitter_noise", 0);
}

GptConfig Defaults() {
  GptConfig config = LlamaDefaults();
  config.context = 131072;
  config.feed_forward = 14336;
  config.norm.epsilon = 1e-5;
  config.mixture.experts = 8;
  config.attention.key_value_heads = 8;
  config.attention.rotary_base = 1e6;
  return config;
}

constexpr LayerName kLayers[] = {{"#.w1", "#.gate_proj"}, {"#.w2", "#.down_proj"}, {"#.w3", "#.up_proj"}};

}  // namespace

constexpr DecoderFamily kMixtralDecoder = {.model_type = "mixtral",
                                           .classes = {"MixtralForCausalLM"},
                                           .defaults = Defaults,
                                           .read = List<KeyReader>,
                                           .write = List<KeyWriter>,
                                           .layers = kLayers};

}  // namespace weft
