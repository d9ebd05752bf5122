// Llama, and the families that differ from it in a few keys.
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "weft/formats/all_decoders.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

// Llama 1 to 3 (Touvron et al., 2023; Llama Team, 2024).
void ListLlama(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  keys.SizeOrNull("head_dim", config.attention.key_width);
  ListRotary(keys, config);
  keys.Field("mlp_bias", config.bias);
  ListAttentionBias(keys, config);
  keys.Only("position_embedding_type", "absolute");
  keys.Harmless({"pretraining_tp"});  // computes the same products in parts
}

GptConfig UsualLlama() { return LlamaDefaults({}); }

// Lists a window of all layers. Without the key, it is `usual`.
void ListCommonWindow(Keys& keys, GptConfig& config, int64_t usual = 0) {
  const int64_t window = ListWindow(keys, config, usual);
  if (window != 0 && config.attention.patterns.empty()) config.attention.patterns = {{.window = window}};
}

// Mistral (Jiang et al., 2023): a Llama with one window in all layers.
void ListMistral(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  keys.SizeOrNull("head_dim", config.attention.key_width);
  ListRotary(keys, config);
  ListCommonWindow(keys, config, 4096);
  keys.Only("position_embedding_type", "absolute");
  keys.Harmless({"pretraining_tp"});
}

GptConfig UsualMistral() { return LlamaDefaults({.context = 131072, .feed_forward = 14336, .key_value_heads = 8}); }

// Mixtral (Jiang et al., 2024): a Mistral with experts in place of feed-forward layers.
void ListMixtral(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  keys.SizeOrNull("head_dim", config.attention.key_width);
  ListRotary(keys, config);
  ListCommonWindow(keys, config);
  keys.Field("num_local_experts", config.mixture.experts);
  int64_t& used = config.mixture.per_token;
  keys.Field("num_experts_per_tok", used);
  if (keys.IsNull("num_experts_per_tok") || used < 1 || used > config.mixture.experts) {
    keys.Refuse("num_experts_per_tok", "a number from 1 to num_local_experts");
  }
  // transformers adds the loss only if it also returns the router's logits.
  bool added = config.balance_loss != 0;
  double factor = added ? config.balance_loss : 0.001;
  keys.Field("output_router_logits", added);
  keys.Field("router_aux_loss_coef", factor);
  config.balance_loss = added ? factor : 0;
  keys.Only("router_jitter_noise", 0);
}

GptConfig UsualMixtral() {
  GptConfig config = UsualMistral();
  config.norm.epsilon = 1e-5;
  config.mixture.experts = 8;
  config.attention.rotary_base = 1e6;
  return config;
}

constexpr LayerName kMixtralLayers[] = {{"#.w1", "#.gate_proj"}, {"#.w2", "#.down_proj"}, {"#.w3", "#.up_proj"}};

// Qwen2, with biases of queries, keys and values, and Qwen3, with norms of queries and keys (Qwen Team, 2024, 2025).
void ListQwen2(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  ListRotary(keys, config);
  bool used = WindowOf(config) != 0;
  int64_t first = 28;
  keys.Field("use_sliding_window", used);
  if (keys.reading()) keys.Field("max_window_layers", first);
  const int64_t own = ListWindow(keys, config, 4096), window = used ? own : 0;
  ListLayerTypes(keys, config, window, [&](int64_t layer) { return window != 0 && layer >= first; });
}

void ListQwen3(Keys& keys, GptConfig& config) {
  ListQwen2(keys, config);
  keys.SizeOrNull("head_dim", config.attention.key_width);
  ListAttentionBias(keys, config);
}

GptConfig UsualQwen2() {
  GptConfig config =
      LlamaDefaults({.vocabulary = 151936, .context = 32768, .feed_forward = 22016, .key_value_heads = 32});
  config.attention.projection_bias = true;
  return config;
}

GptConfig UsualQwen3() {
  GptConfig config = UsualQwen2();
  config.attention.key_width = 128;
  config.attention.projection_bias = false;
  config.attention.query_key_norm = QueryKeyNorm::kHead;
  return config;
}

// Lists no_rope_layers, which has 1 for a layer with rotary positions and 0 for one without them.
void ListRotaryLayers(Keys& keys, GptConfig& config) {
  std::vector<AttentionPattern> patterns = PatternsByLayer(config);
  if (!keys.reading()) {
    Json rotary = Json::array();
    for (const AttentionPattern& each : patterns) rotary.push_back(each.rotary ? 1 : 0);
    return keys.Write("no_rope_layers", rotary);
  }
  int64_t interval = 4;
  keys.Field("no_rope_layer_interval", interval);
  if (interval == 0) keys.Refuse("no_rope_layer_interval", "a number other than 0");
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

// SmolLM3 (Hugging Face, 2025): a Llama in which some layers have no rotary positions.
void ListSmolLm3(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  ListRotary(keys, config);
  keys.Field("mlp_bias", config.bias);
  ListAttentionBias(keys, config);
  bool used = WindowOf(config) != 0;
  keys.Field("use_sliding_window", used);
  const int64_t window = ListWindow(keys, config);
  ListRotaryLayers(keys, config);
  const std::vector<AttentionPattern> patterns = PatternsByLayer(config);
  ListLayerTypes(keys, config, window,
                 [&](int64_t i) { return used && window != 0 && !patterns[static_cast<size_t>(i)].rotary; });
}

GptConfig UsualSmolLm3() {
  GptConfig config = LlamaDefaults(
      {.vocabulary = 128256, .context = 32768, .layers = 36, .heads = 16, .width = 2048, .key_value_heads = 4});
  config.tied_head = true;
  config.attention.rotary_base = 2e6;
  return config;
}

// OLMo 2 (OLMo Team, 2024): norms of layers' results only, and norms over all features of queries and keys.
void ListOlmo2(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  ListRotary(keys, config);
  ListAttentionBias(keys, config);
}

GptConfig UsualOlmo2() {
  GptConfig config = LlamaDefaults({.vocabulary = 50304});
  config.norm.epsilon = 1e-5;
  config.pre_norm = false;
  config.result_norm = true;
  config.attention.query_key_norm = QueryKeyNorm::kFull;
  return config;
}

// Granite (IBM, 2024): a Llama with factors of embeddings, scores, layers' results and logits.
void ListGranite(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config);
  ListRotary(keys, config);
  keys.Field("mlp_bias", config.bias);
  ListAttentionBias(keys, config);
  keys.NotNull({"attention_multiplier", "embedding_multiplier", "residual_multiplier", "logits_scaling"}, "a number");
  double& scale = config.attention.score_scale;
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(config.attention.key_width));
  keys.Field("attention_multiplier", scale);
  keys.Field("embedding_multiplier", config.embedding_scale);
  keys.Field("residual_multiplier", config.residual_scale);
  double divisor = 1 / config.logits_scale;
  keys.Field("logits_scaling", divisor);
  config.logits_scale = 1 / divisor;
}

GptConfig UsualGranite() {
  GptConfig config = LlamaDefaults({});
  config.attention.score_scale = 1;
  return config;
}

// Phi-3 (Microsoft, 2024): a Llama whose queries, keys and values are one tensor, and whose gates and ups are another.
void ListPhi3(Keys& keys, GptConfig& config) {
  keys.Field("resid_pdrop", config.dropout);
  ListLlamaKeys(keys, config);
  ListRotary(keys, config, {.part = "partial_rotary_factor", .may_scale = false});
  ListCommonWindow(keys, config);
  keys.Harmless({"original_max_position_embeddings", "embd_pdrop"});  // for scalings, which are refused; unused
}

GptConfig UsualPhi3() {
  GptConfig config = LlamaDefaults({.vocabulary = 32064, .context = 4096, .width = 3072, .feed_forward = 8192});
  config.norm.epsilon = 1e-5;
  config.embedding_dropout = config.attention_dropout = 0;
  return config;
}

std::vector<Weights::Rule> Phi3Rules(const GptConfig& config) {
  const int64_t groups = config.attention.key_value_heads != 0 ? config.attention.key_value_heads : config.heads;
  return {{.from = "#.self_attn.qkv_proj.weight",
           .to = {"#.self_attn.q_proj.weight", "#.self_attn.k_proj.weight", "#.self_attn.v_proj.weight"},
           .parts = {config.heads, groups, groups}},
          {.from = "#.mlp.gate_up_proj.weight", .to = {"#.mlp.gate_proj.weight", "#.mlp.up_proj.weight"}}};
}

// StableLM 2 (Stability AI, 2024): a Llama with LayerNorm, whose rotary positions turn a part of the features.
void ListStableLm(Keys& keys, GptConfig& config) {
  ListLlamaKeys(keys, config, "hidden_act", "layer_norm_eps");
  ListRotary(keys, config, {.part = "partial_rotary_factor", .usual_part = 0.25});
  bool bias = config.attention.projection_bias.value_or(config.bias);
  keys.Field("use_qkv_bias", bias);
  config.attention.projection_bias = bias;
  bool parallel = config.residual == ResidualForm::kSharedNorm;
  keys.Field("use_parallel_residual", parallel);
  if (parallel) config.residual = ResidualForm::kSharedNorm;
  keys.Only("qk_layernorm", false);  // with one gain for each head
  keys.Only("hidden_dropout", 0);    // of the feed-forward layers alone
}

GptConfig UsualStableLm() {
  GptConfig config =
      LlamaDefaults({.vocabulary = 50304, .context = 4096, .width = 2560, .feed_forward = 6912, .key_value_heads = 32});
  config.norm = {.epsilon = 1e-5};
  return config;
}

}  // namespace

constexpr DecoderFamily kLlamaDecoder = {"llama", {"LlamaForCausalLM"}, UsualLlama, ListLlama};
constexpr DecoderFamily kMistralDecoder = {"mistral", {"MistralForCausalLM"}, UsualMistral, ListMistral};
constexpr DecoderFamily kMixtralDecoder = {
    "mixtral", {"MixtralForCausalLM"}, UsualMixtral, ListMixtral, kMixtralLayers};
constexpr DecoderFamily kQwen2Decoder = {"qwen2", {"Qwen2ForCausalLM"}, UsualQwen2, ListQwen2};
constexpr DecoderFamily kQwen3Decoder = {"qwen3", {"Qwen3ForCausalLM"}, UsualQwen3, ListQwen3};
constexpr DecoderFamily kSmolLm3Decoder = {"smollm3", {"SmolLM3ForCausalLM"}, UsualSmolLm3, ListSmolLm3};
constexpr DecoderFamily kOlmo2Decoder = {"olmo2", {"Olmo2ForCausalLM"}, UsualOlmo2, ListOlmo2};
constexpr DecoderFamily kGraniteDecoder = {"granite", {"GraniteForCausalLM"}, UsualGranite, ListGranite};
constexpr DecoderFamily kPhi3Decoder = {
    .model_type = "phi3", .classes = {"Phi3ForCausalLM"}, .defaults = UsualPhi3, .list = ListPhi3, .rules = Phi3Rules};
constexpr DecoderFamily kStableLmDecoder = {"stablelm", {"StableLmForCausalLM"}, UsualStableLm, ListStableLm};

}  // namespace weft
