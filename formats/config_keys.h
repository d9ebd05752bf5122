// The keys of a config.json as the field writes it. One list of a model's keys serves both ways: given to a KeyReader
// it sets what a configuration has, given to a KeyWriter it writes one.
//
//   template <class Keys, class Config>
//   void ListKeys(Keys& keys, Config& config) {
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
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/models/layers.h"

namespace weft {

template <class E>
using Choices = absl::Span<const std::pair<const char*, E>>;  // of several names of a value, the first is written
extern const Choices<Activation> kActivations;

class KeyReader {
 public:
  explicit KeyReader(const nlohmann::ordered_json& json) : json_(json) {}

  // Sets the value if the key is there and not null.
  template <class T>
  void Field(const char* key, T& value) {
    const nlohmann::ordered_json* const json = Find(key);
    if (json == nullptr) return;
    const bool fits = std::is_same_v<T, bool>          ? json->is_boolean()
                      : std::is_same_v<T, std::string> ? json->is_string()
                      : std::is_same_v<T, double>      ? json->is_number()
                                                       : json->is_number_integer();
    if (fits) {
      value = json->get<T>();
    } else {
      Refuse(key, std::is_same_v<T, bool>          ? "true or false"
                  : std::is_same_v<T, std::string> ? "a text"
                  : std::is_same_v<T, double>      ? "a number"
                                                   : "a whole number");
    }
  }
  // Of a size: null is 0.
  void SizeOrNull(const char* key, int64_t& size) { Field(key, size); }
  // What is the same as `usual` unless said.
  void Field(const char* key, std::optional<double>& value, double usual);
  template <class E>
  void Choice(const char* key, Choices<E> choices, E& value) {
    const nlohmann::ordered_json* const json = Find(key);
    if (json == nullptr) return;
    std::string wanted;
    for (const auto& [name, choice] : choices) {
      if (*json == name) return void(value = choice);
      wanted += (wanted.empty() ? "" : ", ") + std::string(name);
    }
    Refuse(key, wanted);
  }
  // Other values would change what is computed, and are not supported here.
  void Only(const char* key, const nlohmann::ordered_json& value);
  void Harmless(std::initializer_list<const char*> keys);  // whatever their values
  const nlohmann::ordered_json* Find(const char* key);     // null if it is not there, or is null
  bool IsNull(const char* key) const { return json_.contains(key) && json_[key].is_null(); }
  void Refuse(const char* key, absl::string_view wanted);
  // The first refusal. A key that nothing asked for is one, too, unless its value (null, false, nothing) says that it
  // is not used: it might change what is computed.
  absl::Status Finish();
  const absl::Status& Refused() const { return status_; }  // the first refusal of a key that was asked for

 private:
  const nlohmann::ordered_json& json_;
  absl::flat_hash_set<std::string> known_;
  absl::Status status_;
};

class KeyWriter {
 public:
  template <class T>
  void Field(const char* key, const T& value) {
    json_[key] = value;
  }
  void Field(const char* key, const std::optional<double>& value, double usual) { json_[key] = value.value_or(usual); }
  void SizeOrNull(const char* key, int64_t size) {
    json_[key] = nullptr;
    if (size != 0) json_[key] = size;
  }
  template <class E>
  void Choice(const char* key, Choices<E> choices, const E& value) {
    for (const auto& [name, choice] : choices) {
      if (choice == value) return void(json_[key] = name);
    }
  }
  void Only(const char*, const nlohmann::ordered_json&) {}
  void Harmless(std::initializer_list<const char*>) {}

  nlohmann::ordered_json Finish() && { return std::move(json_); }

 private:
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

// What every configuration of Hugging Face's may have besides, and what says how to generate text with the model.
void ReadUsualKeys(KeyReader& keys);

// InvalidArgument "a configuration of MODEL_TYPE cannot say that WHAT" for the first that is so.
struct Inexpressible {
  bool so;
  const char* what;
};
absl::Status CheckExpressible(absl::string_view model_type, std::initializer_list<Inexpressible> forms);

}  // namespace weft

#endif  // WEFT_FORMATS_CONFIG_KEYS_H_
