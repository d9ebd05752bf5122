// JsonFields reads the fields of a request's JSON object. CheckAllRead then finds the fields that were not read.
//
//   JsonFields fields(&request);
//   WEFT_RETURN_IF_ERROR(fields.Whole("n", 1, 256, &n));   // missing or null: unchanged
//   WEFT_RETURN_IF_ERROR(fields.CheckAllRead());
#ifndef WEFT_APPS_SERVE_JSON_FIELDS_H_
#define WEFT_APPS_SERVE_JSON_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"

namespace weft {

// Returns an InvalidArgument about one field. FieldOf returns the field's name, and "" for other errors.
absl::Status FieldError(const std::string& field, absl::string_view message);
std::string FieldOf(const absl::Status& status);

// How a model reads a text as tokens, at most `context`, whose numbers are below `vocabulary`.
struct TokenReader {
  std::function<absl::StatusOr<std::vector<int32_t>>(const std::string& text)> encode;
  int64_t context = 0, vocabulary = 0;
};

class JsonFields {
 public:
  using Json = nlohmann::ordered_json;

  // `json`, an object, must outlive the result.
  explicit JsonFields(const Json* json) : json_(json) {}

  // Each function reads one field into `value`. A wrong field is a FieldError with the field's value and the wanted
  // kind of value. A missing field, or null, leaves `value` as it is.
  absl::Status Text(const char* name, std::string* value);
  absl::Status Texts(const char* name, size_t max, std::vector<std::string>* value);  // a text, or an array of texts
  // Appends the tokens of each text. The field is a text, the numbers of its tokens, or an array of up to `max` of
  // these. Unlike the fields of the other functions, it must not be missing.
  absl::Status Tokens(const char* name, size_t max, const TokenReader& reader,
                      std::vector<std::vector<int32_t>>* value);
  absl::Status Bool(const char* name, bool* value);
  absl::Status Whole(const char* name, int64_t low, int64_t high, int64_t* value);
  // Calls `take` with the field. `take` returns false if the field is wrong. `wanted` is the error's text for the
  // wanted kind of value.
  absl::Status Read(const char* name, const std::string& wanted, absl::FunctionRef<bool(const Json& field)> take);
  // Returns the field, or null if it is missing or null.
  const Json* Any(const char* name);
  // Counts fields as read. Their values change no answer.
  void Ignore(std::initializer_list<const char*> names) { read_.insert(names.begin(), names.end()); }
  // Returns an error for a field that has a value and was not read.
  absl::Status CheckAllRead() const;

 private:
  const Json* const json_;
  std::set<std::string> read_;
};

}  // namespace weft

#endif  // WEFT_APPS_SERVE_JSON_FIELDS_H_
