// ModernBERT (Warner et al., 2024) has norms before each layer, gates, rotary positions and no biases. Most layers see
// near tokens only, and turn positions by a base of their own.
#include <nlohmann/json.hpp>

#include "weft/formats/bert_type.h"
#include "weft/formats/decoders/decoder.h"

namespace weft {
namespace {

// Reads which layers see near tokens only, how far they see, and the bases of rotary positions of both kinds.
void ReadPatterns(Keys& keys, BertConfig& config) {
  int64_t span = 128, period = 3;
  double global = 160000, local = 10000;
  keys.Field("local_attention", span);
  keys.Field("global_attn_every_n_layers", period);
  keys.Field("global_rope_theta", global);
  keys.Field("local_rope_theta", local);
  if (span < 0) keys.Refuse("local_attention", "a number of at least 0");
  if (period < 1) return keys.Refuse("global_attn_every_n_layers", "a number above 0");
  if (const Json* const ropes = keys.Find("rope_parameters"); ropes != nullptr) {
    for (const auto& [type, rope] : ropes->items()) {
      double* const theta = type == "full_attention" ? &global : type == "sliding_attention" ? &local : nullptr;
      KeyReader own(rope);
      if (theta != nullptr) own.Field("rope_theta", *theta);
      for (const char* const kind : {"rope_type", "type"}) own.Only(kind, "default");
      const bool known = theta != nullptr && rope.is_object() && !own.IsNull("rope_theta");
      if (known && own.Finish().ok()) continue;
      return keys.Refuse("rope_parameters", "rope_theta of full_attention and sliding_attention");
    }
  }
  if (!(local > 0)) keys.Refuse("local_rope_theta", "a number above 0");
  config.attention.rotary_base = global;
  GptConfig stack = {.layers = config.layers};
  ListLayerTypes(keys, stack, span / 2 + 1, [&](int64_t layer) { return layer % period != 0; });
  config.attention.patterns = std::move(stack.attention.patterns);
  for (AttentionPattern& each : config.attention.patterns) each.rotary_base = each.window != 0 ? local : 0;
}

void WritePatterns(Keys& keys, const BertConfig& config) {
  GptConfig stack = {.layers = config.layers, .attention = config.attention};
  double local = 10000;
  for (const AttentionPattern& each : config.attention.patterns) {
    if (each.window != 0) local = each.rotary_base != 0 ? each.rotary_base : config.attention.rotary_base;
  }
  const int64_t window = WindowOf(stack);
  keys.Write("local_attention", window != 0 ? 2 * (window - 1) : 128);
  keys.Write("global_rope_theta", config.attention.rotary_base);
  keys.Write("local_rope_theta", local);
  ListLayerTypes(keys, stack, window, [](int64_t) { return false; });
}

void ListModernBert(Keys& keys, BertConfig& config) {
  if (keys.reading()) {
    config = {.vocabulary = 50368,
              .context = 8192,
              .segments = 0,
              .layers = 22,
              .feed_forward = 1152,
              .dropout = 0,
              .attention_dropout = 0,
              .classifier_dropout = 0,
              .norm = {.epsilon = 1e-5, .bias = false},
              .pre_norm = true,
              .bias = false,
              .gated = true,
              .attention = {.rotary = RotaryLayout::kHalves, .projection_bias = false, .output_bias = false},
              .model_type = config.model_type,
              .segment_inputs = false,
              .masked_activation = Activation::kGelu,
              .first_norm = false,
              .result_dropout = false,
              .shared_transform = true,
              .transform_bias = false};
  }
  ListSizes(keys, config);
  keys.Field("intermediate_size", config.feed_forward);
  keys.Choice("hidden_activation", kActivations, config.activation);
  keys.Field("norm_eps", config.norm.epsilon);
  keys.Field("norm_bias", config.norm.bias);
  keys.Field("mlp_bias", config.bias);
  ListAttentionBias(keys, config);
  Activation activation = config.masked_activation.value_or(config.activation);
  keys.Choice("classifier_activation", kActivations, activation);
  config.masked_activation = activation;
  keys.Field("classifier_bias", config.transform_bias);
  keys.Field("decoder_bias", config.masked_bias);
  keys.Choice("classifier_pooling", Choices<Pooling>(kPoolings), config.classifier_pooling);
  keys.Field("embedding_dropout", config.dropout);
  keys.Field("attention_dropout", config.attention_dropout, config.dropout);
  keys.Field("mlp_dropout", config.activation_dropout);
  keys.Field("classifier_dropout", config.classifier_dropout, config.dropout);
  keys.Only("tie_word_embeddings", true);
  keys.reading() ? ReadPatterns(keys, config) : WritePatterns(keys, config);
  constexpr int64_t kUsualPadding = 50283;
  if (config.vocabulary <= kUsualPadding) keys.Write("pad_token_id", nullptr);  // transformers refuses the default then
  keys.NotNull({"local_attention", "classifier_activation", "classifier_pooling"}, "another value");
  // How to compute, initial weights, and keys of published files that no code reads.
  keys.Harmless({"deterministic_flash_attn", "sparse_prediction", "sparse_pred_ignore_index", "reference_compile",
                 "repad_logits_with_grad", "initializer_cutoff_factor", "cls_token_id", "layer_norm_eps",
                 "position_embedding_type"});
}

constexpr absl::string_view kClasses[] = {kModelClass, kMaskedClass, kTextClass, kTokensClass, kChoiceClass};
constexpr LayerName kLayers[] = {
    {"embeddings.tok_embeddings", "embeddings.word_embeddings"},
    {"embeddings.norm", "embeddings.LayerNorm"},
    {"layers.#.attn.Wqkv",
     "encoder.layer.#.attention.self.query,encoder.layer.#.attention.self.key,encoder.layer.#.attention.self.value"},
    {"layers.#.attn.Wo", "encoder.layer.#.attention.output.dense"},
    {"layers.#.attn_norm", "encoder.layer.#.attention.output.LayerNorm"},
    {"layers.#.mlp.Wi", "encoder.layer.#.intermediate.gate,encoder.layer.#.intermediate.dense"},
    {"layers.#.mlp.Wo", "encoder.layer.#.output.dense"},
    {"layers.#.mlp_norm", "encoder.layer.#.output.LayerNorm"},
    {"final_norm", "encoder.LayerNorm"}};
constexpr LayerName kHeads[] = {
    {"head.dense", "head.dense"}, {"head.norm", "head.norm"}, {"decoder", "cls.predictions"}};

}  // namespace

constexpr BertType kModernBertType = {"model.", ListModernBert, kClasses, kLayers, kHeads};

}  // namespace weft
