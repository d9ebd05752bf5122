// Mistral (Jiang et al., 2023): a Llama with one window in all layers.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

constexpr absl::string_view kClasses[] = {"MistralForCausalLM"};

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  keys.SizeOrNull("head_dim", config.attention.key_width);
  ListRotary(keys, config);
  int64_t window = WindowOf(config);
  if constexpr (std::is_same_v<Keys, KeyReader>) window = keys.IsNull("sliding_window") ? 0 : 4096;
  keys.SizeOrNull("sliding_window", window);
  if (window != 0 && config.attention.patterns.empty()) config.attention.patterns = {{.window = window}};
  keys.Only("position_embedding_type", "absolute");
  keys.Harmless({"pretraining_tp"});
}

GptConfig Defaults() {
  GptConfig config = LlamaDefaults();
  config.context = 131072;
  config.feed_forward = 14336;
  config.attention.key_value_heads = 8;
  return config;
}

}  // namespace

constexpr DecoderFamily kMistralDecoder = {.model_type = "mistral",
                                           .classes = kClasses,
                                           .defaults = Defaults,
                                           .read = List<KeyReader>,
                                           .write = List<KeyWriter>};

}  // namespace weft
