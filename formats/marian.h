// These functions read and write Transformers in the names of three classes of Hugging Face's transformers:
// MarianMTModel, PegasusForConditionalGeneration and BlenderbotForConditionalGeneration. No other folder includes this
// header.
//
//   marian      norms come after each layer, positions are sinusoids, the two sides may have token tables of their own
//   pegasus     norms come first, positions are sinusoids, both sides and the output layer share one token table
//   blenderbot  as pegasus, but positions are a table of weights, which can hold any embeddings of positions
//
// The sinusoids of Marian and Pegasus have the frequencies of PositionKind::kSinusoidal: features i and C/2 + i are
// sine and cosine of one frequency, where this project has features 2i and 2i + 1. A permutation of the model's
// features in all weights makes both the same function.
#ifndef WEFT_FORMATS_MARIAN_H_
#define WEFT_FORMATS_MARIAN_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/weights.h"

namespace weft {

// Lists the keys that these classes and this project's own model_type "transformer" share (config_keys.h).
template <class Keys, class Config>
void ListTranslator(Keys& keys, Config& config) {
  keys.Field("max_position_embeddings", config.context);
  keys.Field("d_model", config.width);
  keys.Field("encoder_layers", config.encoder_layers);
  keys.Field("decoder_layers", config.decoder_layers);
  keys.Field("encoder_attention_heads", config.heads);
  keys.Field("encoder_ffn_dim", config.feed_forward);
  keys.Choice("activation_function", kActivations, config.activation);
  keys.Field("dropout", config.dropout);
  keys.Field("attention_dropout", config.attention_dropout);
  keys.Field("activation_dropout", config.activation_dropout);
}

// Reports whether the model_type of `config` is one of the three.
bool IsMarian(const nlohmann::ordered_json& config);
// Reads model.safetensors of a folder with the config.json `json`. Sinusoids are read as PositionKind::kSinusoidal. A
// table of positions that is not the class's sinusoids is read as PositionKind::kLearned.
absl::StatusOr<PublishedModel> ReadMarian(const std::string& folder, const nlohmann::ordered_json& json);
// Writes the model in the first class that has it (WriteModel in weights.h).
absl::Status WriteMarian(const std::string& folder, const PublishedTransformer& model);

// Returns the model_type of the first class that has the model, in the order above. Otherwise returns InvalidArgument,
// which names the option that each class lacks, with its value.
absl::StatusOr<std::string> MarianTypeFor(TransformerConfig config);

}  // namespace weft

#endif  // WEFT_FORMATS_MARIAN_H_
