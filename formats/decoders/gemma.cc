// Gemma 1 to 3 (Gemma Team, 2024, 2025): embeddings times √width, and norms whose gain is 1 + weight. Gemma 2 adds
// norms of results, caps of scores and logits, and windows in every other layer. Gemma 3 adds norms of queries and
// keys, and layers with a window have a rotary base of their own.
#include <cmath>
#include <nlohmann/json.hpp>

#include "weft/formats/all_decoders.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

// Lists the keys of all three.
void ListShared(Keys& keys, GptConfig& config, const char* activation) {
  ListLlamaKeys(keys, config, activation);
  keys.Field("head_dim", config.attention.key_width);
  ListAttentionBias(keys, config);
  keys.Only("use_bidirectional_attention", false);
  if (keys.reading()) config.embedding_scale = std::sqrt(static_cast<double>(config.width));
}

void List1(Keys& keys, GptConfig& config) {
  ListShared(keys, config, "hidden_act");
  ListRotary(keys, config);
  const Json* const name = keys.Find("hidden_act");  // published files with "gelu" mean the form with tanh
  if (name != nullptr && *name == "gelu") config.activation = Activation::kGeluTanh;
  keys.Harmless({"hidden_activation"});
}

// Lists a cap, for which null means none.
void ListCap(Keys& keys, const char* key, double& cap) {
  if (keys.IsNull(key)) cap = 0;
  const Json* const json = keys.Find(key);
  if (json != nullptr && !json->is_number_float()) keys.Refuse(key, "null or a number with a decimal point");
  if (!keys.reading() && cap == 0) return keys.Write(key, nullptr);
  keys.Field(key, cap);
}

// Lists the keys of Gemma 2 and 3. Layer i has a window unless i + 1 is a multiple of `period`.
void ListWindows(Keys& keys, GptConfig& config, int64_t period) {
  ListShared(keys, config, "hidden_activation");
  ListCap(keys, "final_logit_softcapping", config.logits_cap);
  double& scale = config.attention.score_scale;
  int64_t scalar = scale == 0 ? config.attention.key_width : std::llround(1 / (scale * scale));
  keys.Field("query_pre_attn_scalar", scalar);
  if (scalar > 0) scale = 1 / std::sqrt(static_cast<double>(scalar));
  if (scalar <= 0 || keys.IsNull("query_pre_attn_scalar")) keys.Refuse("query_pre_attn_scalar", "a number above 0");
  const int64_t window = ListWindow(keys, config, 4096);
  ListLayerTypes(keys, config, window, [&](int64_t i) { return (i + 1) % period != 0; });
}

void List2(Keys& keys, GptConfig& config) {
  ListWindows(keys, config, 2);
  ListRotary(keys, config);
  ListCap(keys, "attn_logit_softcapping", config.attention.soft_cap);
}

// Lists the rotary positions of both kinds of layers. rope_parameters has an object for each kind; older files have
// rope_theta, rope_scaling and rope_local_base_freq, which are written. The keys of each kind are read as those of a
// model whose layers are all of this kind.
void ListRotary3(Keys& keys, GptConfig& config) {
  if (!keys.reading()) {
    ListRotary(keys, config);
    for (const AttentionPattern& each : config.attention.patterns) {
      if (each.window != 0) keys.Write("rope_local_base_freq", each.rotary_base);
    }
    return;
  }
  Json full = {{"rope_theta", config.attention.rotary_base}}, local = {{"rope_theta", 1e4}};
  for (const auto& [key, kind] : {std::pair("rope_theta", &full), std::pair("rope_local_base_freq", &local)}) {
    if (keys.IsNull(key)) return keys.Refuse(key, "a number");
    if (const Json* const base = keys.Find(key); base != nullptr) (*kind)["rope_theta"] = *base;
  }
  const Json *const both = keys.Find("rope_parameters"), *const scaling = keys.Find("rope_scaling");
  const Json none = Json::object(), &kinds = both != nullptr ? *both : none;
  if (!kinds.is_object()) return keys.Refuse("rope_parameters", "an object");
  if (both == nullptr) full["rope_type"] = "default";  // so that the key "type" of rope_scaling has no effect
  for (const auto& [key, own] : kinds.items()) {
    Json* const kind = key == "full_attention" ? &full : key == "sliding_attention" ? &local : nullptr;
    if (kind == nullptr || (!own.is_object() && !own.is_null())) {
      return keys.Refuse("rope_parameters", "objects full_attention and sliding_attention");
    }
    if (own.is_object()) kind->update(own);
  }
  if (scaling != nullptr && !scaling->is_object()) return keys.Refuse("rope_scaling", "an object");
  if (scaling != nullptr) full.update(*scaling);
  GptConfig sliding = config;
  for (const auto& [kind, to] : {std::pair(&full, &config), std::pair(&local, &sliding)}) {
    const Json json = {{"rope_parameters", *kind}};
    KeyReader own(json);
    ListRotary(own, *to, {.may_scale = to == &config});
    const char* const last = scaling != nullptr && to == &config ? "rope_scaling" : "rope_parameters";
    if (!own.Refused().ok()) return keys.Refuse(last, own.Refused().message());
  }
  for (AttentionPattern& each : config.attention.patterns) {
    if (each.window != 0) each.rotary_base = sliding.attention.rotary_base;
  }
}

void List3(Keys& keys, GptConfig& config) {
  int64_t period = 6;
  if (keys.reading()) keys.Field("sliding_window_pattern", period);
  if (period <= 0 || keys.IsNull("sliding_window_pattern")) {
    return keys.Refuse("sliding_window_pattern", "a number above 0");
  }
  ListWindows(keys, config, period);
  ListRotary3(keys, config);
  // Gemma3ForCausalLM does not use the first key, and does not read the second, which it writes.
  keys.Harmless({"attn_logit_softcapping", "_sliding_window_pattern"});
}

GptConfig Defaults1() {
  GptConfig config = LlamaDefaults({.vocabulary = 256000,
                                    .context = 8192,
                                    .layers = 28,
                                    .heads = 16,
                                    .width = 3072,
                                    .feed_forward = 24576,
                                    .key_value_heads = 16});
  config.activation = Activation::kGeluTanh;
  config.tied_head = true;
  config.norm.plus_one = true;
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

GptConfig Defaults3() {
  GptConfig config = Defaults2();
  config.vocabulary = 262208;
  config.context = 131072;
  config.logits_cap = config.attention.soft_cap = 0;
  config.attention.rotary_base = 1e6;
  config.attention.query_key_norm = QueryKeyNorm::kHead;
  return config;
}

}  // namespace

constexpr DecoderFamily kGemmaDecoder = {"gemma", {"GemmaForCausalLM"}, Defaults1, List1};
constexpr DecoderFamily kGemma2Decoder = {"gemma2", {"Gemma2ForCausalLM"}, Defaults2, List2};
constexpr DecoderFamily kGemma3Decoder = {"gemma3_text", {"Gemma3ForCausalLM"}, Defaults3, List3};

}  // namespace weft
