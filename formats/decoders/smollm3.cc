// SmolLM3 (Hugging Face, 2025): a Llama in which some layers have no rotary positions.
#include <nlohmann/json.hpp>

#include "weft/formats/all_decoders.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Reads no_rope_layers, which has 1 for a layer with rotary positions and 0 for one without them.
void ListRotaryLayers(KeyReader& keys, GptConfig& config) {
  int64_t interval = 4;
  keys.Field("no_rope_layer_interval", interval);
  if (interval == 0) keys.Refuse("no_rope_layer_interval", "a number other than 0");
  std::vector<AttentionPattern> patterns = PatternsByLayer(config);
  const Json* const list = keys.Find("no_rope_layers");
  if (interval == 0 || (list != nullptr && (!list->is_array() || list->size() != patterns.size()))) {
    return keys.Refuse("no_rope_layers", "a number for each of num_hidden_layers");
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (list != nullptr && (*list)[i] != 0 && (*list)[i] != 1) return keys.Refuse("no_rope_layers", "0 or 1");
    patterns[i].rotary = list != nullptr ? (*list)[i] == 1 : (static_cast<int64_t>(i) + 1) % interval != 0;
  }
  config.attention.patterns = std::move(patterns);
}

void ListRotaryLayers(KeyWriter& keys, GptConfig& config) {
  std::vector<int> rotary;
  for (const AttentionPattern& each : PatternsByLayer(config)) rotary.push_back(each.rotary ? 1 : 0);
  keys.Field("no_rope_layers", rotary);
}

template <class Keys>
void List(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  ListRotary(keys, config);
  keys.Field("mlp_bias", config.bias);
  ListAttentionBias(keys, config);
  int64_t window = WindowOf(config);
  bool used = window != 0;
  keys.Field("use_sliding_window", used);
  keys.SizeOrNull("sliding_window", window);
  ListRotaryLayers(keys, config);
  const std::vector<AttentionPattern> patterns = PatternsByLayer(config);
  ListLayerTypes(keys, config, window,
                 [&](int64_t i) { return used && window != 0 && !patterns[static_cast<size_t>(i)].rotary; });
}

GptConfig Defaults() {
  GptConfig config = LlamaDefaults();
  config.vocabulary = 128256;
  config.context = 32768;
  config.layers = 36;
  config.heads = 16;
  config.width = 2048;
  config.tied_head = true;
  config.attention.key_value_heads = 4;
  config.attention.rotary_base = 2e6;
  return config;
}

}  // namespace

constexpr DecoderFamily kSmolLm3Decoder = {.model_type = "smollm3",
                                           .classes = {"SmolLM3ForCausalLM"},
                                           .defaults = Defaults,
                                           .read = List<KeyReader>,
                                           .write = List<KeyWriter>};

}  // namespace weft
