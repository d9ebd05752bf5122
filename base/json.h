// These functions parse JSON objects that other programs wrote, and print JSON. Syntax errors give line and column.
#ifndef WEFT_BASE_JSON_H_
#define WEFT_BASE_JSON_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Parses `text`, which must be a JSON object. Otherwise returns InvalidArgument, such as "it is not JSON: line 1,
// column 12: ...". A key that occurs twice in one object is also an error. So is a value nested more than 16 levels
// deep, because destroying a deep document recurses.
// A configuration of an image model has 44,000 keys, if its 22,000 labels are listed in both directions.
inline constexpr size_t kMaxOrderedKeys = 100'000;
absl::StatusOr<nlohmann::ordered_json> ParseJsonObject(absl::string_view text, size_t max_keys = kMaxOrderedKeys);
// Like ParseJsonObject, for objects with many keys, which the result holds in sorted order. ParseJsonObject keeps the
// order of the text and takes quadratic time in an object's keys: seconds for 50,000. ParseJsonObject therefore
// refuses more than `max_keys` keys in all.
absl::StatusOr<nlohmann::json> ParseLargeJsonObject(absl::string_view text);
// Reads a JSON object from a file, pipe or device. Errors begin with `path`. Returns InvalidArgument if there are more
// than kMaxJsonFile bytes.
inline constexpr size_t kMaxJsonFile = 64'000'000;
absl::StatusOr<nlohmann::ordered_json> ReadJsonFile(const std::string& path);
// Parses any JSON value. Returns a discarded value (nlohmann's is_discarded) if `text` is not JSON.
nlohmann::json ParseJson(absl::string_view text);

// Returns `json` if it is a whole number from -2^63 to 2^63 - 1. nlohmann's get<int64_t> would let larger ones wrap.
std::optional<int64_t> WholeNumber(const nlohmann::json& json);
std::optional<int64_t> WholeNumber(const nlohmann::ordered_json& json);
// Returns `json` if it is a whole number from -2^31 to 2^31 - 1, as the id of a token is.
std::optional<int32_t> TokenId(const nlohmann::ordered_json& json);

// Returns `json` on one line. Bytes of its strings that are not UTF-8 become U+FFFD.
std::string JsonLine(const nlohmann::ordered_json& json);
// Returns "[0.25,-1e-05]", with 7 significant digits.
std::string JsonArray(absl::Span<const float> numbers);

}  // namespace weft

#endif  // WEFT_BASE_JSON_H_
