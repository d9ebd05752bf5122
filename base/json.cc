#include "weft/base/json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/file.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr size_t kMaxDepth = 16;
constexpr uint64_t kMaxWhole = std::numeric_limits<int64_t>::max();

// Shortens an error message of nlohmann::json for users: "line 1, column 12: ..." for
// "[json.exception.parse_error.101] parse error at line 1, column 12: ...".
std::string Cause(absl::string_view message) {
  for (absl::string_view prefix : {"] ", "parse error at "}) {
    if (const size_t at = message.find(prefix); at != message.npos) message.remove_prefix(at + prefix.size());
  }
  return std::string(message);
}

// Checks a text before it is parsed to a value: its syntax, its depth, and that no object has a key twice. A check
// inside the parse, by a callback of nlohmann::json, would take quadratic time for many objects.
class Checker : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Checker(size_t max_keys) : max_keys_(max_keys) {}
  const std::string& problem() const { return problem_; }  // "" if none was found

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool string(string_t&) override { return Value(); }
  bool binary(binary_t&) override { return Value(); }
  bool start_object(std::size_t) override { return Open(); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) return Fail(absl::StrCat("'", key, "' occurs twice"));
    return ++key_count_ <= max_keys_ || Fail(absl::StrCat("it has more than ", max_keys_, " keys"));
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    return Fail(absl::StrCat("it is not JSON: ", Cause(error.what())));
  }

 private:
  bool Fail(std::string problem) {
    problem_ = std::move(problem);
    return false;  // ends the parse
  }
  bool Value() { return keys_.size() <= kMaxDepth || Fail("it is nested too deeply"); }
  bool Open() {
    keys_.emplace_back();
    return keys_.size() <= kMaxDepth + 1 || Fail("it is nested too deeply");
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }

  size_t max_keys_, key_count_ = 0;
  std::vector<absl::flat_hash_set<std::string>> keys_;  // of each object that is open; arrays have none
  std::string problem_;
};

// nlohmann::json takes a NUL for the end of the text, and would accept anything behind it.
constexpr char kNul = '\0';

template <class Json>
absl::StatusOr<Json> Parse(absl::string_view text, size_t max_keys) {
  if (const size_t nul = text.find(kNul); nul != text.npos) {
    return InvalidArgument("it is not JSON: byte ", nul + 1, " is NUL");
  }
  Checker checker(max_keys);
  nlohmann::json::sax_parse(text.begin(), text.end(), &checker);
  if (!checker.problem().empty()) return InvalidArgument(checker.problem());
  Json json = Json::parse(text.begin(), text.end());
  if (!json.is_object()) return InvalidArgument("it is not a JSON object");
  return json;
}

template <class Json>
std::optional<int64_t> ToWholeNumber(const Json& json) {
  const bool too_large = json.is_number_unsigned() && json.template get<uint64_t>() > kMaxWhole;
  if (!json.is_number_integer() || too_large) return std::nullopt;
  return json.template get<int64_t>();
}

}  // namespace

absl::StatusOr<nlohmann::ordered_json> ParseJsonObject(absl::string_view text, size_t max_keys) {
  return Parse<nlohmann::ordered_json>(text, max_keys);
}

absl::StatusOr<nlohmann::json> ParseLargeJsonObject(absl::string_view text) {
  return Parse<nlohmann::json>(text, std::numeric_limits<size_t>::max());
}

absl::StatusOr<nlohmann::ordered_json> ReadJsonFile(const std::string& path) {
  const absl::StatusOr<std::string> contents = ReadFile(path, kMaxJsonFile);
  // The file can't be used, whatever the machine's memory.
  if (absl::IsResourceExhausted(contents.status())) return InvalidArgument(contents.status().message());
  if (!contents.ok()) return contents.status();
  return Annotate(ParseJsonObject(*contents), path);
}

nlohmann::json ParseJson(absl::string_view text) {
  if (text.find(kNul) != text.npos) return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

std::optional<int64_t> WholeNumber(const nlohmann::json& json) { return ToWholeNumber(json); }
std::optional<int64_t> WholeNumber(const nlohmann::ordered_json& json) { return ToWholeNumber(json); }

std::optional<int32_t> TokenId(const nlohmann::ordered_json& json) {
  const std::optional<int64_t> number = WholeNumber(json);
  return number == static_cast<int32_t>(number.value_or(0)) ? std::optional(static_cast<int32_t>(*number))
                                                            : std::nullopt;
}

std::string JsonLine(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string JsonArray(absl::Span<const float> numbers) {
  std::string text = "[";
  for (const float x : numbers) {
    absl::StrAppend(&text, text.size() == 1 ? "" : ",", std::isfinite(x) ? absl::StrFormat("%.7g", x) : "null");
  }
  return text + "]";
}

}  // namespace weft
