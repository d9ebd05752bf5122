// Reads JSON objects from files that other programs wrote, with errors that say where a file is wrong.
#ifndef WEFT_CORE_JSON_H_
#define WEFT_CORE_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Parses `text`, a JSON object. InvalidArgument, like "it is not JSON: line 1, column 12: ...", if it is none. Two
// things that the JSON library accepts are errors, too: a key that an object has twice, and nesting so deep that
// destroying the document would exhaust the stack.
absl::StatusOr<nlohmann::ordered_json> ParseJsonObject(absl::string_view text);
// The same for objects with many keys, which come sorted. ParseJsonObject takes quadratic time: seconds for 50,000
// keys.
absl::StatusOr<nlohmann::json> ParseLargeJsonObject(absl::string_view text);
// Reads a file that holds a JSON object. Errors begin with `path`.
absl::StatusOr<nlohmann::ordered_json> ReadJsonFile(const std::string& path);

}  // namespace weft

#endif  // WEFT_CORE_JSON_H_
