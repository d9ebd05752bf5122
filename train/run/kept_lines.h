// KeepLines cuts a file of JSON lines back to a training step, from which a run is resumed.
//
//   WEFT_ASSIGN_OR_RETURN(const int64_t damaged, KeepLines("run/metrics.jsonl", 500, [](const nlohmann::json&) {}));
#ifndef WEFT_TRAIN_RUN_KEPT_LINES_H_
#define WEFT_TRAIN_RUN_KEPT_LINES_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace weft {

// Returns the natural number `key` of `json`, or nothing if there is none or it is 2^63 or more.
std::optional<int64_t> NaturalNumber(const nlohmann::json& json, const char* key);

// Keeps the lines of `path` whose "step" is at most `step`, so a negative `step` keeps none, and calls `kept` with each
// of them. Removes all other lines. Returns the number of removed lines that have no step. A last line without its end,
// which a killed program leaves, does not count. A missing file has no lines.
absl::StatusOr<int64_t> KeepLines(const std::string& path, int64_t step,
                                  absl::FunctionRef<void(const nlohmann::json&)> kept);

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_KEPT_LINES_H_
