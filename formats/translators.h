// A TranslatorFamily describes encoder-decoders of Hugging Face whose models are a Transformer: the model_types, and
// the functions that read and write their configurations and the names of their tensors. Each family is one file, such
// as marian.cc, and one row of the table in transformer.cc. No other folder includes this header.
#ifndef WEFT_FORMATS_TRANSLATORS_H_
#define WEFT_FORMATS_TRANSLATORS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/token_texts.h"
#include "weft/formats/weights.h"

namespace weft {

struct TranslatorFamily {
  absl::Span<const absl::string_view> model_types;
  absl::StatusOr<PublishedModel> (*read)(const std::string& folder, const nlohmann::ordered_json& config);
  // Returns the first model_type that has a model, whose `config` has no kAuto positions. Otherwise returns
  // InvalidArgument "not marian, because pre_norm is true; not ...". `padding`: the padding token.
  absl::StatusOr<std::string> (*type_for)(const TransformerConfig& config, int32_t padding);
  // Returns config.json of a `model_type` that type_for gave, and changes the tensors to those of Hugging Face.
  absl::StatusOr<nlohmann::ordered_json> (*publish)(const std::string& model_type, const TransformerConfig& config,
                                                    const TranslationTokens& tokens, Weights* weights);
};

extern const TranslatorFamily kMarianFamily, kT5Family;

// Makes one tensor of the token table's copies under the names that transformers gives them. As in transformers, a head
// that differs from the table stays, and `config` then says so.
absl::Status TieTables(TransformerConfig* config, Weights* weights);

// Names of the kinds of positions in config.json.
inline constexpr std::pair<const char*, PositionKind> kPositionNames[] = {
    {"sinusoidal", PositionKind::kSinusoidal},
    {"sinusoidal_halves", PositionKind::kSinusoidalHalves},
    {"learned", PositionKind::kLearned},
    {"auto", PositionKind::kAuto},
    {"none", PositionKind::kNone}};

// Lists the keys that the classes of marian.cc and this project's own model_type "transformer" share (config_keys.h).
inline void ListTranslator(Keys& keys, TransformerConfig& config) {
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

}  // namespace weft

#endif  // WEFT_FORMATS_TRANSLATORS_H_
