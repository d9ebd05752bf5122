// Qwen2, with biases of queries, keys and values, and Qwen3, with norms of queries and keys (Qwen Team, 2024, 2025).
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void ListQwen2(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  ListRotary(keys, config);
  int64_t window = WindowOf(config), first = 28;
  bool used = window != 0;
  keys.Field("use_sliding_window", used);
  if constexpr (std::is_same_v<Keys, KeyReader>) {
    window = keys.IsNull("sliding_window") ? 0 : 4096;
    keys.Field("max_window_layers", first);
  }
  keys.SizeOrNull("sliding_window", window);
  if (!used) window = 0;
  ListLayerTypes(keys, config, window, [&](int64_t layer) { return window != 0 && layer >= first; });
}

template <class Keys>
void ListQwen3(Keys& keys, GptConfig& config) {
  ListQwen2(keys, config);
  keys.SizeOrNull("head_dim", config.attention.key_width);
  ListAttentionBias(keys, config);
}

GptConfig Qwen2Defaults() {
  GptConfig config = LlamaDefaults();
  config.vocabulary = 151936;
  config.context = 32768;
  config.feed_forward = 22016;
  config.attention.key_value_heads = 32;
  config.attention.projection_bias = true;
  return config;
}

GptConfig Qwen3Defaults() {
  GptConfig config = Qwen2Defaults();
  config.attention.key_width = 128;
  config.attention.projection_bias = false;
  config.attention.query_key_norm = QueryKeyNorm::kHead;
  return config;
}

}  // namespace

constexpr DecoderFamily kQwen2Decoder = {.model_type = "qwen2",
                                         .classes = {"Qwen2ForCausalLM"},
                                         .defaults = Qwen2Defaults,
                                         .read = ListQwen2<KeyReader>,
                                         .write = ListQwen2<KeyWriter>};
constexpr DecoderFamily kQwen3Decoder = {.model_type = "qwen3",
                                         .classes = {"Qwen3ForCausalLM"},
                                         .defaults = Qwen3Defaults,
                                         .read = ListQwen3<KeyReader>,
                                         .write = ListQwen3<KeyWriter>};

}  // namespace weft
