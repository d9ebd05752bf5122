// A DecoderFamily describes one model_type of Hugging Face whose models are a Gpt: its keys, their defaults, and the
// names of its tensors. Each family is one file beside this one, and one row of the table in decoders.cc.
//
//   template <class Keys>
//   void List(Keys& keys, GptConfig& config) {   // reads the keys with a KeyReader, and writes them with a KeyWriter
//     ListLlamaKeys(keys, config);
//     ListRotary(keys, config);
//   }
//   constexpr DecoderFamily kExampleDecoder = {.model_type = "example", .classes = {"ExampleForCausalLM"},
//                                              .defaults = Defaults, .read = List<KeyReader>, .write =
//                                              List<KeyWriter>};
//
// The functions below list keys that several families have. A family whose layers have other names than Llama's lists
// them in `layers`. If tensors also have another layout, `rules` change the published tensors to those of Llama.
#ifndef WEFT_FORMATS_DECODERS_DECODER_H_
#define WEFT_FORMATS_DECODERS_DECODER_H_

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/published.h"
#include "weft/formats/weights.h"
#include "weft/models/gpt.h"

namespace weft {

struct DecoderFamily {
  absl::string_view model_type;
  std::array<absl::string_view, 2> classes;  // allowed in the key architectures; the first one is written
  GptConfig (*defaults)();                   // the configuration of a config.json without keys
  void (*read)(KeyReader& keys, GptConfig& config);
  void (*write)(KeyWriter& keys, GptConfig& config);  // null: the family is only read
  absl::Span<const LayerName> layers = {};            // the layers whose names are not Gpt's
  // The name of a layer of queries, keys and values, in which # is the number of the block. Its rows are groups of
  // heads that share keys and values, each with its queries, its keys and its values. Empty: there is no such layer.
  absl::string_view fused_layer = "";
  // Returns the other changes from the published tensors to those of Gpt. Null: there are none.
  std::vector<Weights::Rule> (*rules)(const GptConfig& config) = nullptr;
};

// Returns all families. A model is written as the first family that can express it, unless it was read as another one.
absl::Span<const DecoderFamily* const> DecoderFamilies();
// Returns the family with this model_type, or null.
const DecoderFamily* FindDecoder(absl::string_view model_type);

// Returns a model with RMSNorm, gates, rotary positions in halves, no biases and Llama's names. Sizes are Llama's.
GptConfig LlamaDefaults();
// The same with LayerNorm, the approximation of GELU, no gates, and biases except in the head. Feed-forward layers are
// 4 times as wide as the model.
GptConfig LayerNormDefaults();

// Returns the window of the layers that have one, or 0 if none has.
int64_t WindowOf(const GptConfig& config);

// Lists the keys of sizes that most families have.
template <class Keys, class Config>
void ListSizes(Keys& keys, Config& config) {
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("max_position_embeddings", config.context);
  keys.Field("hidden_size", config.width);
  keys.Field("num_hidden_layers", config.layers);
  keys.Field("num_attention_heads", config.heads);
}

// Lists a window of all layers. Without the key, it is `usual`.
template <class Keys>
void ListWindow(Keys& keys, GptConfig& config, int64_t usual = 0) {
  int64_t window = WindowOf(config);
  if constexpr (std::is_same_v<Keys, KeyReader>) window = keys.IsNull("sliding_window") ? 0 : usual;
  keys.SizeOrNull("sliding_window", window);
  if (window != 0 && config.attention.patterns.empty()) config.attention.patterns = {{.window = window}};
}

// Lists Llama's keys of sizes, activation, dropout, norms and ties.
template <class Keys>
void ListLlamaKeys(Keys& keys, GptConfig& config, const char* activation = "hidden_act",
                   const char* epsilon = "rms_norm_eps") {
  ListSizes(keys, config);
  if constexpr (std::is_same_v<Keys, KeyReader>) {  // null: each head has its own keys and values
    if (keys.IsNull("num_key_value_heads")) config.attention.key_value_heads = 0;
  }
  keys.SizeOrNull("num_key_value_heads", config.attention.key_value_heads);
  keys.Field("intermediate_size", config.feed_forward);
  keys.Choice(activation, kActivations, config.activation);
  keys.Field("attention_dropout", config.attention_dropout, config.dropout);
  keys.Field(epsilon, config.norm.epsilon);
  keys.Field("tie_word_embeddings", config.tied_head);
}

// Lists the keys that GPT-2 and GPT-J share.
template <class Keys>
void ListGpt2Keys(Keys& keys, GptConfig& config) {
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("n_positions", config.context);
  keys.Field("n_embd", config.width);
  keys.Field("n_layer", config.layers);
  keys.Field("n_head", config.heads);
  keys.SizeOrNull("n_inner", config.feed_forward);
  keys.Choice("activation_function", kActivations, config.activation);
  keys.Field("resid_pdrop", config.dropout);
  keys.Field("embd_pdrop", config.embedding_dropout, config.dropout);
  keys.Field("attn_pdrop", config.attention_dropout, config.dropout);
  keys.Field("layer_norm_epsilon", config.norm.epsilon);
  keys.Field("tie_word_embeddings", config.tied_head);
  // Of a head that no GPT here has.
  keys.Harmless(
      {"summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"});
}

// Lists `key`, which says whether all four layers of attention have biases. ListLlamaKeys or `config` has said before
// whether the other layers have biases.
template <class Keys>
void ListAttentionBias(Keys& keys, GptConfig& config, const char* key = "attention_bias") {
  bool bias = config.attention.projection_bias.value_or(config.bias);
  keys.Field(key, bias);
  config.attention.projection_bias = config.attention.output_bias = bias;
}

// The keys of rotary positions in which families differ.
struct RotaryKeys {
  const char* theta = "rope_theta";
  const char* part = nullptr;  // the key for the fraction of a head's features that are turned; null: all are
  double usual_part = 1;       // without the key
  bool may_scale = true;
};
// Reads rope_theta, rope_scaling and rope_parameters as transformers does: rope_scaling comes before rope_parameters,
// and rope_theta in one of these before the key rope_theta. Refuses kinds of scaling that Gpt lacks.
void ListRotary(KeyReader& keys, GptConfig& config, const RotaryKeys& names = {});
// Writes rope_theta and, if there is a scaling, rope_scaling, which all versions of transformers read.
void ListRotary(KeyWriter& keys, GptConfig& config, const RotaryKeys& names = {});

// Returns the pattern of each layer. `layers` above kMaxLayers, which Validate refuses, counts as 0.
std::vector<AttentionPattern> PatternsByLayer(const GptConfig& config);
// Reads layer_types, a list of "full_attention" and "sliding_attention", and gives layers of the second type the window
// `window`. Without the key, layer i has the second type if `slides`(i) is true. `window`: 0: no layer may have it.
void ListLayerTypes(KeyReader& keys, GptConfig& config, int64_t window, absl::FunctionRef<bool(int64_t)> slides);
void ListLayerTypes(KeyWriter& keys, GptConfig& config, int64_t window, absl::FunctionRef<bool(int64_t)> slides);

}  // namespace weft

#endif  // WEFT_FORMATS_DECODERS_DECODER_H_
