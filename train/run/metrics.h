// Metrics are the figures of a training step, and MetricsFile appends them to metrics.jsonl, one JSON object a line.
// The line of step 0 has only the evaluation before the first update.
//
//   WEFT_ASSIGN_OR_RETURN(MetricsFile file, MetricsFile::Open("run/metrics.jsonl", -1));
//   WEFT_RETURN_IF_ERROR(file.Append({.step = 1, .training = {{.loss = 4.3}}}));
#ifndef WEFT_TRAIN_RUN_METRICS_H_
#define WEFT_TRAIN_RUN_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/train/run/step_lines.h"

namespace weft {

// Figures such as {"f1", 0.9}. metrics.jsonl has them as "val_f1".
using NamedFigures = std::vector<std::pair<std::string, double>>;

struct Metrics {
  struct Training {
    double loss = 0;  // of the step's batch before the update
    double learning_rate = 0;
    double gradient_norm = 0;  // before clipping
    double tokens_per_second = 0;
  };

  struct Validation {
    double loss = 0;                               // mean over the validation data after the update
    std::optional<double> accuracy;                // fraction of correctly predicted targets; unset if not counted
    std::optional<double> bits_per_byte;           // the loss for a byte of text; unset if the bytes are not known
    std::optional<double> ema_loss, ema_accuracy;  // the same with averaged weights; unset if there are none
    std::optional<double> ema_bits_per_byte;
    NamedFigures figures, ema_figures;  // further figures of the task

    // Returns all figures by their names: "loss", "accuracy", ... `averaged`: those with averaged weights, if any.
    NamedFigures All(bool averaged) const;
  };

  int64_t step = 0;                  // the number of updates so far
  int64_t tokens = 0;                // the number of tokens trained on so far
  double seconds = 0;                // since the run began; excludes the time between a stop and a resumption
  std::optional<Training> training;  // unset if the loss or the gradient norm of the step is not finite
  std::optional<int64_t> skipped;    // if this step changed no weight: the number of such steps so far
  std::optional<Validation> validation;
  int64_t memory = 0;  // resident bytes of the process; 0: not measured
};

// Returns {"step":1,"tokens":768,"seconds":0.02,"train_loss":4.3,"val_loss":4.2,...} without a newline. A number has
// the fewest digits from which the same double can be read.
std::string ToJsonLine(const Metrics& metrics);

class MetricsFile {
 public:
  // Opens `path`, or creates it. Keeps the lines of steps up to `step`, so a negative `step` keeps none. Removes all
  // other lines, including lines that are not metrics.
  static absl::StatusOr<MetricsFile> Open(const std::string& path, int64_t step);

  absl::Status Append(const Metrics& metrics) { return lines_.Append(ToJsonLine(metrics)); }
  absl::Status Sync() { return lines_.Sync(); }  // writes the appended lines to the disk
  // Return the figures of the last line that Open kept.
  double seconds() const { return seconds_; }
  int64_t tokens() const { return tokens_; }
  // Returns the number of lines that Open removed because they are not metrics (StepLines::damaged).
  int64_t damaged_lines() const { return lines_.damaged(); }

 private:
  StepLines lines_;
  double seconds_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_METRICS_H_
