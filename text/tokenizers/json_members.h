// These functions read the members of JSON objects in tokenizer.json and the files beside it. A missing member counts
// as null.
#ifndef WEFT_TEXT_TOKENIZERS_JSON_MEMBERS_H_
#define WEFT_TEXT_TOKENIZERS_JSON_MEMBERS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "weft/base/json.h"
#include "weft/base/status.h"

namespace weft {

// Returns the member `key` of `object`, or null if there is none.
inline const nlohmann::json& Member(const nlohmann::json& object, const std::string& key) {
  static const nlohmann::json kNull;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? kNull : *found;
}

template <class T>
bool Fits(const nlohmann::json& value) {
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
  if constexpr (std::is_integral_v<T>) return WholeNumber(value).has_value() && *WholeNumber(value) == value.get<T>();
}

// Returns the member `key` of `object`, or `otherwise` if it is missing or null.
template <class T>
absl::StatusOr<T> Get(const nlohmann::json& object, const std::string& key, T otherwise) {
  const nlohmann::json& value = Member(object, key);
  if (value.is_null()) return otherwise;
  if (!Fits<T>(value)) return InvalidArgument(key, ": ", value.dump(), " is not of the right type");
  return value.get<T>();
}

// Returns the member "type" of `object`, or a text in its place for an error message.
inline std::string TypeOf(const nlohmann::json& object) {
  const nlohmann::json& type = Member(object, "type");
  return object.is_null() ? "null" : type.is_string() ? type.get<std::string>() : object.dump().substr(0, 60);
}

// Returns `json`, or if it is a Sequence, the objects that it and the Sequences in it have in `items`, in order.
inline std::vector<const nlohmann::json*> Flatten(const nlohmann::json& json, const std::string& items) {
  if (json.is_null()) return {};
  if (TypeOf(json) != "Sequence") return {&json};
  std::vector<const nlohmann::json*> all;
  for (const nlohmann::json& item : Member(json, items)) {
    const std::vector<const nlohmann::json*> inner = Flatten(item, items);
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return all;
}

// A row of a table of steps: the type of an object in tokenizer.json, and the function that reads it.
template <class Step>
struct StepKind {
  const char* name;
  absl::StatusOr<Step> (*read)(const nlohmann::json& object);
};

// Returns the step that `object` describes, or InvalidArgument if none of `kinds` has its type.
template <class Step, size_t n>
absl::StatusOr<Step> ReadStep(const StepKind<Step> (&kinds)[n], const nlohmann::json& object) {
  const StepKind<Step>* const kind = FindRow(kinds, TypeOf(object));
  if (kind != nullptr) return Annotate(kind->read(object), kind->name);
  return InvalidArgument("its type is '", TypeOf(object), "', not one of ", absl::StrJoin(RowNames(kinds), ", "));
}

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_JSON_MEMBERS_H_
