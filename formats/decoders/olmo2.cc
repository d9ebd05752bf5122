// OLMo 2 (OLMo Team, 2024): norms of layers' results only, and norms over all features of queries and keys.
#include "weft/formats/all_decoders.h"

namespace weft {
namespace {

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  ListRotary(keys, config);
  ListAttentionBias(keys, config);
}

GptConfig Defaults() {
  GptConfig config = LlamaDefaults();
  config.vocabulary = 50304;
  config.norm.epsilon = 1e-5;
  config.pre_norm = false;
  config.result_norm = true;
  config.attention.query_key_norm = QueryKeyNorm::kFull;
  return config;
}

}  // namespace

constexpr DecoderFamily kOlmo2Decoder = {.model_type = "olmo2",
                                         .classes = {"Olmo2ForCausalLM"},
                                         .defaults = Defaults,
                                         .read = List<KeyReader>,
                                         .write = List<KeyWriter>};

}  // namespace weft
