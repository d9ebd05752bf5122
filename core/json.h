// These functions read JSON objects that other programs wrote. Errors tell where a file is wrong.
#ifndef WEFT_CORE_JSON_H_
#define WEFT_CORE_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Parses `text`, a JSON object. Otherwise returns InvalidArgument, such as "it is not JSON: line 1, column 12: ...". A
// key that occurs twice in an object is also an error. So is nesting so deep that destroying the document would exhaust
// the stack.
absl::StatusOr<nlohmann::ordered_json> ParseJsonObject(absl::string_view text);
// Does the same for objects with many keys, and sorts them. ParseJsonObject takes quadratic time: 50,000 keys take
// seconds.
absl::StatusOr<nlohmann::json> ParseLargeJsonObject(absl::string_view text);
// Reads a file that holds a JSON object. Errors begin with `path`.
absl::StatusOr<nlohmann::ordered_json> ReadJsonFile(const std::string& path);

// Returns `json` on one line. Bytes of its strings that are not UTF-8 become U+FFFD.
std::string JsonLine(const nlohmann::ordered_json& json);
// Returns "[0.25,-1e-05]", with 7 significant digits.
std::string JsonArray(absl::Span<const float> numbers);

}  // namespace weft

#endif  // WEFT_CORE_JSON_H_
