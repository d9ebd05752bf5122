// Llama 1 to 3 (Touvron et al., 2023; Llama Team, 2024).
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  keys.SizeOrNull("head_dim", config.attention.key_width);
  ListRotary(keys, config);
  keys.Field("mlp_bias", config.bias);
  ListAttentionBias(keys, config);
  keys.Only("position_embedding_type", "absolute");
  keys.Harmless({"pretraining_tp"});  // computes the same products in parts
}

}  // namespace

constexpr DecoderFamily kLlamaDecoder = {.model_type = "llama",
                                         .classes = {"LlamaForCausalLM"},
                                         .defaults = LlamaDefaults,
                                         .read = List<KeyReader>,
                                         .write = List<KeyWriter>};

}  // namespace weft
