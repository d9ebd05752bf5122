// A RunLog writes the figures of a training to files in the run's folder. metrics.jsonl has a line for each step.
// insights.jsonl has a line for each evaluation: a histogram of each weight, how much the last step changed the weight,
// and a sample of the model. `weft report` shows both. Two equal runs write equal bytes to insights.jsonl. An event
// file is for TensorBoard (train/run/event_file.h).
//
//   WEFT_ASSIGN_OR_RETURN(RunLog log, RunLog::Open("run", /*step=*/-1, {.insights = true}));
//   log.Remember(parameters);                                                     // before step 500
//   WEFT_RETURN_IF_ERROR(log.AppendInsights(500, "To be, or not", parameters));   // after step 500
//   WEFT_RETURN_IF_ERROR(log.Append({.step = 500, .training = {{.loss = 4.3}}}, parameters));
#ifndef WEFT_TRAIN_RUN_RUN_LOG_H_
#define WEFT_TRAIN_RUN_RUN_LOG_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/core/parameters.h"
#include "weft/train/run/event_file.h"
#include "weft/train/run/metrics.h"

namespace weft {

// Each figure of insights.jsonl is of at most this number of evenly spaced values of a weight: enough for a histogram,
// and a few milliseconds for a hundred weights.
inline constexpr size_t kInsightValues = 16'384;

struct RunLogOptions {
  bool insights = false, tensorboard = false;  // whether to write insights.jsonl and the event file
  // If true, functions that append return OK, and error() returns the first error. With several ranks, a rank
  // whose writing failed must go on until the next exchange tells the others.
  bool keeps_errors = false;
};

class RunLog {
 public:
  RunLog() = default;  // writes nothing
  // Opens the files, or creates them. Keeps the lines and events of steps up to `step`, so a negative `step` keeps
  // none. Removes all others, including lines that have no step.
  static absl::StatusOr<RunLog> Open(const std::string& folder, int64_t step, const RunLogOptions& options = {});

  // Return the figures of the last line of metrics.jsonl that Open kept.
  double seconds() const { return seconds_; }
  int64_t tokens() const { return tokens_; }
  // Returns a warning for metrics.jsonl and for the event file, if Open removed damaged parts. An incomplete last line,
  // which a killed program leaves, is no damage.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Appends a line to metrics.jsonl, and its figures to the event file. If the line has an evaluation, the event file
  // also gets a histogram of each weight.
  absl::Status Append(const Metrics& metrics, const Parameters& parameters);
  // The functions for insights do nothing unless `has_insights`.
  bool has_insights() const { return insights_.has_value(); }
  // Copies values of the trained weights before a step that an evaluation follows.
  void Remember(const Parameters& parameters);
  // Appends a line on the trained weights after `step` updates. Bytes of `sample` that are not UTF-8 become U+FFFD; an
  // error of `sample` is the result. The line has a weight's "log10_update", log10 of RMS(now - remembered) / RMS(now),
  // if Remember was called since the last line and the weight has changed.
  absl::Status AppendInsights(int64_t step, const absl::StatusOr<std::string>& sample, const Parameters& parameters);
  // Appends a text to the event file.
  absl::Status AppendText(int64_t step, const std::string& name, absl::string_view text);
  absl::Status Sync();  // writes everything that was appended to the disk
  const absl::Status& error() const { return error_; }

 private:
  // A file of JSON objects, one a line, each with the number of a step under "step".
  class Lines {
   public:
    // Opens the file, removes lines without a step or of later steps, and calls `kept` with each other line.
    static absl::StatusOr<Lines> Open(const std::string& path, int64_t step,
                                      absl::FunctionRef<void(const nlohmann::json&)> kept);
    int64_t damaged() const { return damaged_; }  // removed lines without a step, except an incomplete last line
    absl::Status Append(absl::string_view line);
    absl::Status Sync();

   private:
    struct Close {
      void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::string path_;
    std::unique_ptr<std::FILE, Close> file_;
    int64_t damaged_ = 0;
  };

  absl::Status Kept(const absl::Status& status);

  std::optional<Lines> metrics_, insights_;
  std::optional<EventFile> events_;
  bool keeps_errors_ = false;
  absl::Status error_;
  std::vector<std::string> warnings_;
  double seconds_ = 0;
  int64_t tokens_ = 0;
  std::map<std::string, std::vector<double>> remembered_;  // by weight
};

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_RUN_LOG_H_
