#include "weft/apps/serve/json_fields.h"

#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "weft/base/json.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/lab/page.h"

namespace weft {
namespace {

constexpr char kField[] = "weft/field";

// Returns the tokens of one text, or those whose numbers `text` has.
absl::StatusOr<std::vector<int32_t>> TokensOf(const JsonFields::Json& text, const TokenReader& reader) {
  if (text.is_string()) return reader.encode(text.get<std::string>());
  if (!text.is_array()) return InvalidArgument("wanted a string, an array of strings, or arrays of numbers of tokens");
  std::vector<int32_t> tokens;
  for (const JsonFields::Json& id : text) {
    const std::optional<int32_t> token = TokenId(id);
    if (!token) return InvalidArgument("got ", Shortened(JsonLine(id), 100), ", wanted the number of a token");
    tokens.push_back(*token);
  }
  WEFT_RETURN_IF_ERROR(CheckTokens("it", tokens, reader.context, reader.vocabulary));
  return tokens;
}

}  // namespace

absl::Status FieldError(const std::string& field, absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", message));
  status.SetPayload(kField, absl::Cord(field));
  return status;
}

std::string FieldOf(const absl::Status& status) {
  const auto field = status.GetPayload(kField);
  return field.has_value() ? std::string(*field) : "";
}

const JsonFields::Json* JsonFields::Any(const char* name) {
  read_.insert(name);
  const auto field = json_->find(name);
  return field == json_->end() || field->is_null() ? nullptr : &*field;
}

absl::Status JsonFields::Read(const char* name, const std::string& wanted,
                              absl::FunctionRef<bool(const Json& field)> take) {
  const Json* const field = Any(name);
  if (field == nullptr || take(*field)) return absl::OkStatus();
  return FieldError(name, absl::StrCat("got ", Shortened(JsonLine(*field), 100), ", wanted ", wanted));
}

absl::Status JsonFields::Text(const char* name, std::string* value) {
  return Read(name, "a string", [&](const Json& field) {
    if (field.is_string()) *value = field.get<std::string>();
    return field.is_string();
  });
}

absl::Status JsonFields::Texts(const char* name, size_t max, std::vector<std::string>* value) {
  return Read(name, absl::StrCat("a string, or an array of 1 to ", max, " strings"), [&](const Json& field) {
    const Json texts = field.is_array() ? field : Json::array({field});
    for (const Json& text : texts) {
      if (!text.is_string()) return false;
      value->push_back(text.get<std::string>());
    }
    return !texts.empty() && texts.size() <= max;
  });
}

absl::Status JsonFields::Tokens(const char* name, size_t max, const TokenReader& reader,
                                std::vector<std::vector<int32_t>>* value) {
  const Json* const field = Any(name);
  if (field == nullptr) return FieldError(name, "it is missing");
  const bool many = field->is_array() && !field->empty() && !field->front().is_number();
  const Json texts = many ? *field : Json::array({*field});
  if (texts.size() > max) return FieldError(name, absl::StrCat("got ", texts.size(), " texts, wanted at most ", max));
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::StatusOr<std::vector<int32_t>> tokens = TokensOf(texts[i], reader);
    if (!tokens.ok()) {
      return FieldError(name, absl::StrCat(many ? absl::StrCat("text ", i, ": ") : "", tokens.status().message()));
    }
    value->push_back(*std::move(tokens));
  }
  return absl::OkStatus();
}

absl::Status JsonFields::Bool(const char* name, bool* value) {
  return Read(name, "true or false", [&](const Json& field) {
    if (field.is_boolean()) *value = field.get<bool>();
    return field.is_boolean();
  });
}

absl::Status JsonFields::Whole(const char* name, int64_t low, int64_t high, int64_t* value) {
  return Read(name, absl::StrCat("a whole number from ", low, " to ", high), [&](const Json& field) {
    const std::optional<int64_t> number = WholeNumber(field);
    const bool fits = number.has_value() && *number >= low && *number <= high;
    if (fits) *value = *number;
    return fits;
  });
}

absl::Status JsonFields::CheckAllRead() const {
  for (const auto& [name, value] : json_->items()) {
    if (value.is_null() || read_.contains(name)) continue;
    return FieldError(name, "this server has no such field, or does not support it here");
  }
  return absl::OkStatus();
}

}  // namespace weft
