// JSON objects from files that anyone may have written.
#ifndef WEFT_CORE_JSON_H_
#define WEFT_CORE_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// InvalidArgument "it is not JSON: line 1, column 12: ..." and the like, also for what the JSON library would let
// through: a key that an object has twice, and depths that would exhaust the stack when the document is destroyed.
absl::StatusOr<nlohmann::ordered_json> ParseJsonObject(absl::string_view text);
// The same with the keys of objects sorted. An ordered object takes quadratic time for its keys: seconds for 50,000.
absl::StatusOr<nlohmann::json> ParseLargeJsonObject(absl::string_view text);
// Reads a file that must be a JSON object. Errors begin with `path`.
absl::StatusOr<nlohmann::ordered_json> ReadJsonFile(const std::string& path);

}  // namespace weft

#endif  // WEFT_CORE_JSON_H_
