// Granite (IBM, 2024): a Llama with factors of embeddings, scores, layers' results and logits.
#include <cmath>

#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  ListRotary(keys, config);
  keys.Field("mlp_bias", config.bias);
  ListAttentionBias(keys, config);
  if constexpr (std::is_same_v<Keys, KeyReader>) {
    for (const char* const key :
         {"attention_multiplier", "embedding_multiplier", "residual_multiplier", "logits_scaling"}) {
      if (keys.IsNull(key)) keys.Refuse(key, "a number");
    }
  }
  double& scale = config.attention.score_scale;
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(config.attention.key_width));
  keys.Field("attention_multiplier", scale);
  keys.Field("embedding_multiplier", config.embedding_scale);
  keys.Field("residual_multiplier", config.residual_scale);
  double divisor = 1 / config.logits_scale;
  keys.Field("logits_scaling", divisor);
  config.logits_scale = 1 / divisor;
}

GptConfig Defaults() {
  GptConfig config = LlamaDefaults();
  config.attention.score_scale = 1;
  return config;
}

}  // namespace

constexpr DecoderFamily kGraniteDecoder = {.model_type = "granite",
                                           .classes = {"GraniteForCausalLM"},
                                           .defaults = Defaults,
                                           .read = List<KeyReader>,
                                           .write = List<KeyWriter>};

}  // namespace weft
