// A DecoderFamily describes one model_type of Hugging Face whose models are a Gpt: its keys, their defaults, and the
// names of its tensors. Each other .cc file here defines related families. decoders.cc has the table with a row for
// each family.
//
//   void ListExample(Keys& keys, GptConfig& config) {   // reads or writes the keys
//     ListLlamaKeys(keys, config);
//     ListRotary(keys, config);
//   }
//   constexpr DecoderFamily kExampleDecoder = {"example", {"ExampleForCausalLM"}, UsualExample, ListExample};
//
// The functions below list keys that several families have. A family whose layers have other names than Llama's lists
// them in `layers`. If tensors also have another layout, `rules` change the published tensors to those of Llama.
#ifndef WEFT_FORMATS_DECODERS_DECODER_H_
#define WEFT_FORMATS_DECODERS_DECODER_H_

#include <array>
#include <cstdint>
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
  std::array<absl::string_view, 2> classes;     // allowed in the key architectures; the first one is written
  GptConfig (*defaults)();                      // the configuration of a config.json without keys
  void (*list)(Keys& keys, GptConfig& config);  // reads or writes the keys
  absl::Span<const LayerName> layers = {};      // the layers whose names are not Gpt's
  // The name of a layer of queries, keys and values, in which # is the number of the block. Its rows are groups of
  // heads that share keys and values, each with its queries, its keys and its values. Empty: there is no such layer.
  absl::string_view fused_layer = "";
  // Returns the other changes from the published tensors to those of Gpt. Null: there are none.
  std::vector<Weights::Rule> (*rules)(const GptConfig& config) = nullptr;
  bool only_read = false;  // true: no model is written as this family
};

// Returns all families. A model is written as the first family that can express it, unless it was read as another one.
absl::Span<const DecoderFamily* const> DecoderFamilies();
// Returns the family with this model_type, or null.
const DecoderFamily* FindDecoder(absl::string_view model_type);

// The sizes in which families differ, with those of Llama.
struct DecoderSizes {
  int64_t vocabulary = 32000, context = 2048, layers = 32, heads = 32, width = 4096;
  int64_t feed_forward = 0;  // 0: 11008 with LlamaDefaults, 4 times `width` with LayerNormDefaults
  int64_t key_value_heads = 0;
};
// Returns a model with RMSNorm, gates, rotary positions in halves, no biases and Llama's names.
GptConfig LlamaDefaults(const DecoderSizes& sizes);
// The same with LayerNorm, the approximation of GELU, no gates, and biases except in the head.
GptConfig LayerNormDefaults(const DecoderSizes& sizes);

// Lists the keys of sizes that most families have.
template <class Config>
void ListSizes(Keys& keys, Config& config) {
  keys.Field("vocab_size", config.vocabulary);
  keys.Field("max_position_embeddings", config.context);
  keys.Field("hidden_size", config.width);
  keys.Field("num_hidden_layers", config.layers);
  keys.Field("num_attention_heads", config.heads);
}

// Lists Llama's keys of sizes, activation, dropout, norms and ties.
void ListLlamaKeys(Keys& keys, GptConfig& config, const char* activation = "hidden_act",
                   const char* epsilon = "rms_norm_eps");

// Lists attention_bias, which says whether all four layers of attention have biases. ListLlamaKeys or `config` has said
// before whether the other layers have biases.
template <class Config>
void ListAttentionBias(Keys& keys, Config& config) {
  bool bias = config.attention.projection_bias.value_or(config.bias);
  keys.Field("attention_bias", bias);
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
// and rope_theta in one of these before the key rope_theta. Refuses kinds of scaling that Gpt lacks. Writes rope_theta
// and, if there is a scaling, rope_scaling, which all versions of transformers read.
void ListRotary(Keys& keys, GptConfig& config, const RotaryKeys& names = {});

// Returns the window of the layers that have one, or 0 if none has.
int64_t WindowOf(const GptConfig& config);
// Lists sliding_window, and returns it: `usual` without the key, and 0 if it is null.
int64_t ListWindow(Keys& keys, const GptConfig& config, int64_t usual = 0);
// Returns the pattern of each layer. `layers` above kMaxLayers, which Validate refuses, counts as 0.
std::vector<AttentionPattern> PatternsByLayer(const GptConfig& config);
// Lists layer_types, a list of "full_attention" and "sliding_attention". Reading gives layers of the second type the
// window `window`; without the key, layer i has the second type if `slides`(i) is true. If `window` is 0, no layer may
// have it.
void ListLayerTypes(Keys& keys, GptConfig& config, int64_t window, absl::FunctionRef<bool(int64_t)> slides);

}  // namespace weft

#endif  // WEFT_FORMATS_DECODERS_DECODER_H_
