// Metrics are the figures of a training step, a line of metrics.jsonl. The line of step 0 has only the evaluation
// before the first update. Progress shows them to a person while the training proceeds.
//
//   Progress progress({.terminal = isatty(STDOUT_FILENO) != 0});
//   progress.Say("training a GPT");
//   WEFT_RETURN_IF_ERROR(trainer->Train(&progress));
#ifndef WEFT_TRAIN_RUN_METRICS_H_
#define WEFT_TRAIN_RUN_METRICS_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

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
    double loss = 0;                      // mean over the validation data after the update
    std::optional<double> accuracy;       // fraction of correctly predicted targets; unset if not counted
    std::optional<double> bits_per_byte;  // the loss for a byte of text; unset if the bytes are not known
    NamedFigures figures;                 // further figures of the task
  };

  int64_t step = 0;                           // the number of updates so far
  int64_t tokens = 0;                         // the number of tokens trained on so far
  double seconds = 0;                         // since the run began; excludes the time between a stop and a resumption
  std::optional<Training> training;           // unset if the loss or the gradient norm of the step is not finite
  std::optional<int64_t> skipped;             // if this step changed no weight: the number of such steps so far
  std::optional<Validation> validation, ema;  // `ema`: with averaged weights; unset if there are none
  int64_t memory = 0;                         // resident bytes of the process; 0: not measured

  // Returns the figures of `validation` by their names: "loss", "accuracy", ... `averaged`: those of `ema`.
  NamedFigures Evaluated(bool averaged) const;
};

// Returns {"step":1,"tokens":768,"seconds":0.02,"train_loss":4.3,"val_loss":4.2,...} without a newline. A number has
// the fewest digits from which the same double can be read.
std::string ToJsonLine(const Metrics& metrics);

struct ProgressOptions {
  std::FILE* out = stdout;
  bool terminal = false;    // `out` is a terminal
  bool quiet = false;       // prints nothing
  double between = 0.1;     // minimum seconds between two texts of the rewritten line, for reading
  int64_t log_every = 100;  // steps between lines in a file; 0: none
};

// On a terminal, Progress rewrites one line, at most every `between` seconds and after the last step. In a file, it
// prints a line every `log_every` steps and after the last step. Each evaluation prints a line of its own. The time
// left follows from the mean time of a step.
class Progress {
 public:
  explicit Progress(const ProgressOptions& options) : options_(options) {}
  ~Progress() { End(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Begin(int64_t first_step, int64_t steps);
  void Step(int64_t step, const Metrics::Training& training);
  void Evaluation(const Metrics& line);  // does nothing if the line has no evaluation
  void Say(absl::string_view line);      // prints a line
  void End();                            // ends the line that is rewritten

 private:
  using Clock = std::chrono::steady_clock;

  ProgressOptions options_;
  int64_t first_step_ = 0, steps_ = 0;
  Clock::time_point begin_, shown_;
  bool line_open_ = false;
};

// Prints a line "weft: warning: TEXT" to stderr.
void Warn(absl::string_view text);

// "59s", "1:05", "2:00:07"
std::string FormatDuration(double seconds);
// Returns "step 120/2000  loss 2.3456  rate 9.8e-04  31.2k tokens/s  1:05 left".
std::string FormatStep(int64_t step, int64_t steps, const Metrics::Training& training, double seconds_left);

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_METRICS_H_
