// metrics.jsonl: one JSON object a line, one line a step.
//
// Line 0 is there if the model was evaluated before the first update; it has no training figures.
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
    std::optional<double> accuracy;  // the part of the targets that the model guesses, where they are counted
  };

  int64_t step = 0;    // updates that were made
  int64_t tokens = 0;  // that were trained on so far
  double seconds = 0;  // since the run began, the time between a stop and its resumption left out
  std::optional<Training> training;
  std::optional<Validation> validation;
};

// {"step":1,"tokens":768,"seconds":0.02,"train_loss":4.3,"val_loss":4.2,...} without newline. Numbers are the shortest
// that read back as the same double.
std::string ToJsonLine(const Metrics& metrics);

class MetricsFile {
 public:
  // Opens `path` to append lines after that of `step`; later ones, and what is no such line, are dropped. Everything
  // is if `step` is negative.
  static absl::StatusOr<MetricsFile> Open(const std::string& path, int64_t step);

  absl::Status Append(const Metrics& metrics);
  absl::Status Sync();  // what was appended lasts
  // Of the last line that was kept.
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
