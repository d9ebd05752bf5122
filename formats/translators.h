// A TranslatorFamily describes encoder-decoders of Hugging Face whose models are a Transformer: the model_types, and
// the functions that read and write their configurations and the names of their tensors. Each family is one file, such
// as marian.cc, and one row of the table in transformer.cc. The header also has the file model.bin of CTranslate2, and
// keys that several of these have. No other folder includes it.
#ifndef WEFT_FORMATS_TRANSLATORS_H_
#define WEFT_FORMATS_TRANSLATORS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/token_texts.h"
#include "weft/formats/weights.h"

namespace weft {

struct TranslatorType {
  const char* model_type;
  std::vector<absl::string_view> classes;  // allowed in the key architectures; the first one is written
  TransformerConfig usual;                 // what the class fixes, and what its missing keys mean
  // Of marian.cc: whether the two sides may have token tables of their own, and whether logits have a bias.
  bool separate_tables = false, logits_bias = true;
  bool scales_logits = true;  // of t5.cc: whether logits may be divided by √C
};

struct TranslatorFamily {
  const std::vector<TranslatorType>& (*types)();
  absl::StatusOr<PublishedModel> (*read)(const TranslatorType& type, const std::string& folder, const Json& config);
  // Returns the first option of `config`, with its value, that the type lacks, or "" if the type has the model:
  // "pre_norm is true". `config` has no kAuto positions. `padding`: the padding token.
  std::string (*lacking)(const TranslatorType& type, const TransformerConfig& config, int32_t padding);
  // Returns config.json of a type that lacks nothing, and changes the tensors to those of Hugging Face.
  absl::StatusOr<Json> (*publish)(const TranslatorType& type, const TransformerConfig& config,
                                  const TranslationTokens& tokens, Weights* weights);
};

extern const TranslatorFamily kMarianFamily, kT5Family;

// Writes the model.bin that the program CTranslate2 opens. `weights` have CTranslate2's names, except embeddings that
// both sides share. Returns InvalidArgument if a tensor is not f32 or has more than 4 GiB, or if a name is too long.
absl::Status WriteModelBin(const std::string& path, const TransformerConfig& config, Weights weights);
// Reads a model.bin of version 6: returns the weights in f32 under the names that WriteModelBin takes, and sets all
// that the file tells of `config`. A quantized tensor is divided by its scales, and these are left out. Returns
// InvalidArgument if the file is damaged, or has another version or another kind of model. Also returns
// InvalidArgument, with the name, if the model has a feature that this project's Transformer lacks.
absl::StatusOr<Weights> ReadModelBin(const std::string& path, TransformerConfig* config);

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
