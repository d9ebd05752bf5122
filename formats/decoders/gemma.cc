// Gemma 1 to 3 (Gemma Team, 2024, 2025): embeddings times √width, and norms whose gain is 1 + weight. Gemma 2 adds
// norms of results, caps of scores and logits, and windows in every other layer. Gemma 3 adds norms of queries and
// keys, and layers with a window have a rotary base of their own.
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/formats/all_decoders.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Lists the keys of both.
template <class Keys>
void ListShared(Keys& keys, GptConfig& config, const char* activation) {
  ListLlamaKeys(keys, config, activation);
  keys.Field("head_dim", config.attention.key_width);
  ListAttentionBias(keys, config);
  keys.Only("use_bidirectional_attention", false);
  if constexpr (std::is_same_v<Keys, KeyReader>) config.embedding_scale = std::sqrt(static_cast<double>(config.width));
}

template <class Keys>
void List1(Keys& keys, GptConfig& config) {
  ListShared(keys, config, "hidden_act");
  ListRotary(keys, config);
  if constexpr (std::is_same_v<Keys, KeyReader>) {  // published files with "gelu" mean the form with tanh
    const Json* const name = keys.Find("hidden_act");
    if (name != nullptr && *name == "gelu") config.activation = Activation::kGeluTanh;
  }
  keys.Harmless({"hidden_activation"});
}

// Lists a cap, for which null means none.
void ListCap(KeyReader& keys, const char* key, double& cap) {
  if (keys.IsNull(key)) cap = 0;
  keys.Field(key, cap);
}
void ListCap(KeyWriter& keys, const char* key, double& cap) { keys.Field(key, cap != 0 ? Json(cap) : Json()); }

// Lists the keys of Gemma 2. Layer i has a window unless i + 1 is a multiple of `period`.
template <class Keys>
void ListWindows(Keys& keys, GptConfig& config, int64_t period) {
  ListShared(keys, config, "hidden_activation");
  ListCap(keys, "final_logit_softcapping", config.logits_cap);
  double& scale = config.attention.score_scale;
  int64_t scalar = scale == 0 ? config.attention.key_width : std::llround(1 / (scale * scale));
  keys.Field("query_pre_attn_scalar", scalar);
  if (scalar > 0) scale = 1 / std::sqrt(static_cast<double>(scalar));
  int64_t window = WindowOf(config);
  if constexpr (std::is_same_v<Keys, KeyReader>) {
    if (scalar <= 0 || keys.IsNull("query_pre_attn_scalar")) keys.Refuse("query_pre_attn_scalar", "a number above 0");
    window = keys.IsNull("sliding_window") ? 0 : 4096;
  }
  keys.SizeOrNull("sliding_window", window);
  ListLayerTypes(keys, config, window, [&](int64_t i) { return (i + 1) % period != 0; });
}

template <class Keys>
void List2(Keys& keys, GptConfig& config) {
  ListWindows(keys, config, 2);
  ListRotary(keys, config);
  ListCap(keys, "attn_logit_softcapping", config.attention.soft_cap);
}

GptConfig Defaults1() {
  GptConfig config = LlamaDefaults();
  config.vocabulary = 256000;
  config.context = 8192;
  config.layers = 28;
  config.heads = 16;
  config.width = 3072;
  config.feed_forward = 24576;
  config.activation = Activation::kGeluTanh;
  config.tied_head = true;
  config.norm.plus_one = true;
  config.attention.key_value_heads = 16;
  config.attention.key_width = 256;
  return config;
}

GptConfig Defaults2() {
  GptConfig config = Defaults1();
  config.layers = 26;
  config.heads = 8;
  config.width = 2304;
  config.feed_forward = 9216;
  config.result_norm = true;
  config.logits_cap = 30;
  config.attention.key_value_heads = 4;
  config.attention.score_scale = 1.0 / 16;
  config.attention.soft_cap = 50;
  return config;
}

}  // namespace

constexpr DecoderFamily kGemmaDecoder = {.model_type = "gemma",
                                         .classes = {"GemmaForCausalLM"},
                                         .defaults = Defaults1,
                                         .read = List1<KeyReader>,
                                         .write = List1<KeyWriter>};
constexpr DecoderFamily kGemma2Decoder = {.model_type = "gemma2",
                                          .classes = {"Gemma2ForCausalLM"},
                                          .defaults = Defaults2,
                                          .read = List2<KeyReader>,
                                          .write = List2<KeyWriter>};

}  // namespace weft
