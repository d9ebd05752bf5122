// JsonLines reads a file of JSON objects, one a line, to which another program may be appending.
//
//   JsonLines lines("runs/gpt-1/metrics.jsonl");
//   const auto add = [&](const nlohmann::json& line) { steps.push_back(line.at("step")); };
//   WEFT_RETURN_IF_ERROR(lines.Read([&] { steps.clear(); }, add).status());   // and again, as the file grows
#ifndef WEFT_LAB_REPORTS_JSON_LINES_H_
#define WEFT_LAB_REPORTS_JSON_LINES_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace weft {

class JsonLines {
 public:
  explicit JsonLines(std::string path) : path_(std::move(path)) {}

  // Calls `add` with each line that was appended since the last call. If the file was replaced or cut, first calls
  // `restart`, and then `add` with all its lines again. A missing file has no lines. A last line without its end may
  // still be growing and is left for the next call. Returns whether `restart` or `add` was called.
  absl::StatusOr<bool> Read(absl::FunctionRef<void()> restart, absl::FunctionRef<void(nlohmann::json)> add);

  // Returns the number of complete lines that are not JSON objects. Read passes over them.
  int64_t damaged() const { return damaged_; }

 private:
  std::string path_;
  size_t end_ = 0;         // of the bytes that Read has taken
  std::string last_line_;  // ends at `end_`; tells whether the file is still the same
  int64_t damaged_ = 0;
};

}  // namespace weft

#endif  // WEFT_LAB_REPORTS_JSON_LINES_H_
