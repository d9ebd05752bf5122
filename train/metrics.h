// Metrics are the figures of a training step, and MetricsFile appends them to metrics.jsonl: one JSON object a line,
// one line a step. A line of step 0, without training figures, has the evaluation before the first update.
//
//   WEFT_ASSIGN_OR_RETURN(MetricsFile file, MetricsFile::Open("run/metrics.jsonl", -1));
//   WEFT_RETURN_IF_ERROR(file.Append({.step = 1, .training = {{.loss = 4.3}}}));
#ifndef WEFT_TRAIN_METRICS_H_
#define WEFT_TRAIN_METRICS_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

struct Metrics {
  struct Training {
    double loss = 0;  // of the step's batch, before its update
    double learning_rate = 0;
    double gradient_norm = 0;  // before clipping
    double tokens_per_second = 0;
  };

  struct Validation {
    double loss = 0;                 // the mean over the validation data, after the update
    std::optional<double> accuracy;  // the fraction of targets that the model predicts, if they are counted
  };

  int64_t step = 0;    // the number of updates so far
  int64_t tokens = 0;  // the number of tokens trained on so far
  double seconds = 0;  // since the run began, without the time between a stop and its resumption
  std::optional<Training> training;
  std::optional<Validation> validation;
};

// Returns {"step":1,"tokens":768,"seconds":0.02,"train_loss":4.3,"val_loss":4.2,...} without a newline. Numbers have
// the fewest digits that read back as the same double.
std::string ToJsonLine(const Metrics& metrics);

class MetricsFile {
 public:
  // Opens `path` to append lines after the line of `step`. Removes later lines and text that is not a line of metrics;
  // if `step` is negative, removes everything.
  static absl::StatusOr<MetricsFile> Open(const std::string& path, int64_t step);

  absl::Status Append(const Metrics& metrics);
  absl::Status Sync();  // writes the appended lines to the disk
  // The figures of the last line that Open kept.
  double seconds() const { return seconds_; }
  int64_t tokens() const { return tokens_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  double seconds_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace weft

#endif  // WEFT_TRAIN_METRICS_H_
