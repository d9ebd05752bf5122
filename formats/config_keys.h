// Each kind of model lists its keys in config.json once, in a function like the one below. With a KeyReader, the
// function reads the fields of a configuration from JSON; with a KeyWriter, it writes the fields to JSON. No other
// folder includes this header.
//
//   void ListKeys(Keys& keys, BertConfig& config) {
//     keys.Field("vocab_size", config.vocabulary);
//     keys.Choice("hidden_act", kActivations, config.activation);
//     keys.Only("is_decoder", false);
//   }
#ifndef WEFT_FORMATS_CONFIG_KEYS_H_
#define WEFT_FORMATS_CONFIG_KEYS_H_

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/models/layers.h"

namespace weft {

// The contents of a config.json or a similar file, in the order of its keys.
using Json = nlohmann::ordered_json;
template <class E>
using Choices = absl::Span<const std::pair<const char*, E>>;  // if a value has several names, the first is written
extern const Choices<Activation> kActivations;
// Keys of text generation that config.json may have. formats/generation.h reads them.
inline constexpr const char* kGenerationKeys[] = {
    // Special tokens.
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id", "forced_bos_token_id",
    "forced_eos_token_id",
    // Lengths, beam search and sampling.
    "max_length", "min_length", "max_new_tokens", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
    "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "min_p", "epsilon_cutoff", "eta_cutoff",
    "min_new_tokens", "guidance_scale", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids",
    // Results, and tokens that must or may not follow.
    "num_return_sequences", "output_scores", "return_dict_in_generate", "remove_invalid_values",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens"};
// The keys of CTranslate2's config.json for special tokens. ReadTokenNames (published.h) reads them.
inline constexpr const char* kTokenNameKeys[] = {"unk_token",           "bos_token",      "eos_token",
                                                 "decoder_start_token", "add_source_bos", "add_source_eos"};

// The keys of one JSON object, which a KeyReader reads and a KeyWriter writes.
class Keys {
 public:
  bool reading() const { return json_ != nullptr; }

  // Reads or writes `value`. Reading leaves `value` unchanged if the key is absent or null.
  template <class T>
  void Field(const char* key, T& value) {
    if (!reading()) return Write(key, value);
    const Json* const json = Find(key);
    if (json == nullptr) return;
    const auto [fits, wanted] = std::is_same_v<T, bool>          ? std::pair{json->is_boolean(), "true or false"}
                                : std::is_same_v<T, std::string> ? std::pair{json->is_string(), "a text"}
                                : std::is_same_v<T, double>
                                    ? std::pair{json->is_number(), "a number"}
                                    : std::pair{WholeNumber(*json).has_value(), "a whole number"};
    if (!fits) return Refuse(key, wanted);
    value = json->get<T>();
  }
  // Reads an optional value that may be unset without the key.
  template <class T>
  void Field(const char* key, std::optional<T>& value) {
    if (Find(key) != nullptr) Field(key, value.emplace());
  }
  // The same for a size that is written as null if it is 0.
  void SizeOrNull(const char* key, int64_t& size) {
    if (!reading() && size == 0) return Write(key, nullptr);
    Field(key, size);
  }
  // The same for a value for which unset means `usual`. If a value that was read equals `usual`, it becomes unset.
  void Field(const char* key, std::optional<double>& value, double usual);
  // Reads or writes the name of a value.
  template <class E>
  void Choice(const char* key, Choices<E> choices, E& value) {
    const Json* const json = Find(key);
    if (reading() && json == nullptr) return;
    std::string wanted;
    for (const auto& [name, choice] : choices) {
      if (!reading() && choice == value) return Write(key, name);
      if (reading() && *json == name) return void(value = choice);
      wanted += (wanted.empty() ? "" : ", ") + std::string(name);
    }
    Refuse(key, wanted);
  }

  // Writes a value that is no field of the configuration. Does nothing when reading.
  void Write(const char* key, const Json& value) {
    if (!reading()) written_[key] = value;
  }

  // The following functions do nothing when writing.

  // Refuses any value of `key` except `value` and null. Other values would change the model's results, and are not
  // supported. The key may be absent.
  void Only(const char* key, const Json& value);
  // Accepts `keys` with any values, because they do not change the model's results.
  void Harmless(absl::Span<const char* const> keys);
  void Harmless(std::initializer_list<const char*> keys) { Harmless(absl::MakeConstSpan(keys.begin(), keys.size())); }
  // Returns the value of `key`, or null if the key is absent or its value is null.
  const Json* Find(const char* key);
  bool IsNull(const char* key) const { return reading() && json_->contains(key) && (*json_)[key].is_null(); }
  // Records an error for the value of `key`. The first error is kept.
  void Refuse(const char* key, absl::string_view wanted);
  // Refuses null as the value of any of `keys`.
  void NotNull(std::initializer_list<const char*> keys, absl::string_view wanted) {
    for (const char* const key : keys) {
      if (IsNull(key)) Refuse(key, wanted);
    }
  }
  // Returns the first error in the keys that calls have named. Other keys are not checked.
  const absl::Status& Refused() const { return status_; }

 protected:
  explicit Keys(const Json* json) : json_(json) {}

  const Json* json_;  // the object to read; null in a KeyWriter
  Json written_ = Json::object();
  absl::flat_hash_set<std::string> known_;
  absl::Status status_;
};

class KeyReader : public Keys {
 public:
  explicit KeyReader(const Json& json) : Keys(&json) {}

  // Returns the first error. An unknown key, which no call has named, is also an error, because it might change the
  // model's results. An unknown key with the value null, false or empty is accepted, because it is not in use.
  absl::Status Finish();
};

// Returns `config` after KeyReader::Finish and Validate.
template <class Config>
absl::StatusOr<Config> Finished(KeyReader& keys, const Config& config) {
  WEFT_RETURN_IF_ERROR(keys.Finish());
  WEFT_RETURN_IF_ERROR(Validate(config));
  return config;
}

class KeyWriter : public Keys {
 public:
  KeyWriter() : Keys(nullptr) {}
  // Begins with the keys by which the package transformers finds the class of a model.
  KeyWriter(absl::string_view model_type, absl::string_view model_class) : KeyWriter() {
    Write("model_type", std::string(model_type));
    Write("architectures", Json::array({std::string(model_class)}));
  }

  Json Finish() && { return std::move(written_); }
};

// Lists the keys that BERT and ViT share.
template <class Config>
void ListEncoder(Keys& keys, Config& config) {
  keys.Field("hidden_size", config.width);
  keys.Field("num_hidden_layers", config.layers);
  keys.Field("num_attention_heads", config.heads);
  keys.Field("intermediate_size", config.feed_forward);
  keys.Choice("hidden_act", kActivations, config.activation);
  keys.Field("hidden_dropout_prob", config.dropout);
}

// Accepts keys that any configuration of Hugging Face may have, such as those of text generation. is_encoder_decoder
// must be `encoder_decoder`, add_cross_attention must be false, and pruned_heads must be empty. Each class in
// architectures must be one of `classes`, because other classes compute other things from the same kind of tensors.
void ReadUsualKeys(KeyReader& keys, absl::Span<const absl::string_view> classes, bool encoder_decoder = false);

// Returns InvalidArgument "a configuration of MODEL_TYPE cannot say that PROPERTY" for the first of `properties` that
// the model has, because the keys of the model_type can't express it.
absl::Status CheckExpressible(absl::string_view model_type,
                              std::initializer_list<std::pair<bool, const char*>> properties);

}  // namespace weft

#endif  // WEFT_FORMATS_CONFIG_KEYS_H_
