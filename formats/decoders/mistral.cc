// Mistral (Jiang et al., 2023): a Llama with one window in all layers.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  keys.SizeOrNull("head_dim", config.attention.key_width);
  ListRotary(keys, config);
  ListWindow(keys, config, 4096);
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
                                           .classes = {"MistralForCausalLM"},
                                           .defaults = Defaults,
                                           .read = List<KeyReader>,
                                           .write = List<KeyWriter>};

}  // namespace weft
