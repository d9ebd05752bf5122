#include "weft/core/json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/core/file.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr int kMaxDepth = 16;

// Shortens an error message of nlohmann::json for users: "line 1, column 12: ..." for
// "[json.exception.parse_error.101] parse error at line 1, column 12: ...".
std::string Cause(absl::string_view message) {
  for (absl::string_view prefix : {"] ", "parse error at "}) {
    if (const size_t at = message.find(prefix); at != message.npos) message.remove_prefix(at + prefix.size());
  }
  return std::string(message);
}

template <class Json>
absl::StatusOr<Json> Parse(absl::string_view text) {
  std::vector<std::set<std::string>> keys;
  std::string problem;
  const auto check = [&](int depth, typename Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth && problem.empty()) problem = "it is nested too deeply";
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && problem.empty()) {
      const std::string& key = parsed.template get_ref<const std::string&>();
      if (!keys.back().insert(key).second) problem = absl::StrCat("'", key, "' occurs twice");
    }
    return problem.empty();  // false skips the rest after a problem
  };
  Json json;
  try {
    json = Json::parse(text.begin(), text.end(), check);
  } catch (const typename Json::exception& error) {
    if (problem.empty()) problem = absl::StrCat("it is not JSON: ", Cause(error.what()));
  }
  if (problem.empty() && !json.is_object()) problem = "it is not a JSON object";
  if (!problem.empty()) return InvalidArgument(problem);
  return json;
}

}  // namespace

absl::StatusOr<nlohmann::ordered_json> ParseJsonObject(absl::string_view text) {
  return Parse<nlohmann::ordered_json>(text);
}

absl::StatusOr<nlohmann::json> ParseLargeJsonObject(absl::string_view text) { return Parse<nlohmann::json>(text); }

absl::StatusOr<nlohmann::ordered_json> ReadJsonFile(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  return Annotate(ParseJsonObject(contents), path);
}

std::string JsonLine(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string JsonArray(absl::Span<const float> numbers) {
  std::string text = "[";
  for (const float x : numbers) absl::StrAppendFormat(&text, "%s%.7g", text.size() == 1 ? "" : ",", x);
  return text + "]";
}

}  // namespace weft
