// StepLines is a file to which a training appends JSON objects, one a line, each with the number of a step under
// "step": metrics.jsonl and insights.jsonl.
//
//   WEFT_ASSIGN_OR_RETURN(StepLines lines, StepLines::Open("run/metrics.jsonl", 500));   // goes on after step 500
//   WEFT_RETURN_IF_ERROR(lines.Append(R"({"step":501})"));
#ifndef WEFT_TRAIN_RUN_STEP_LINES_H_
#define WEFT_TRAIN_RUN_STEP_LINES_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Returns the natural number `key` of `json`, or nothing if there is none or it is 2^63 or more.
std::optional<int64_t> NaturalNumber(const nlohmann::json& json, const char* key);

class StepLines {
 public:
  // Opens `path`, or creates it. Keeps the lines of steps up to `step`, so a negative `step` keeps none, and calls
  // `kept` with each of them. Removes all other lines.
  static absl::StatusOr<StepLines> Open(const std::string& path, int64_t step,
                                        absl::FunctionRef<void(const nlohmann::json&)> kept);

  absl::Status Append(absl::string_view line);  // does not wait for the disk
  absl::Status Sync();                          // writes the appended lines to the disk
  // Returns the number of lines that Open removed because they have no step. A last line without its end, which a
  // killed program leaves, does not count.
  int64_t damaged() const { return damaged_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  int64_t damaged_ = 0;
};

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_STEP_LINES_H_
