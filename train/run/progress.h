// Progress shows how a training run proceeds. On a terminal, it rewrites one line. In a file, it prints a line every
// `log_every` steps and after the last step. Each evaluation prints a line of its own.
//
//   Progress progress({.terminal = isatty(STDOUT_FILENO) != 0});
//   progress.Say("training a GPT");
//   WEFT_RETURN_IF_ERROR(trainer->Train(&progress));
#ifndef WEFT_TRAIN_RUN_PROGRESS_H_
#define WEFT_TRAIN_RUN_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/string_view.h"
#include "weft/train/run/metrics.h"

namespace weft {

struct ProgressOptions {
  std::FILE* out = stdout;
  bool terminal = false;    // `out` is a terminal
  bool quiet = false;       // prints nothing
  double between = 0.1;     // minimum seconds between two texts of the rewritten line, for reading
  int64_t log_every = 100;  // steps between lines in a file; 0: none
};

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

#endif  // WEFT_TRAIN_RUN_PROGRESS_H_
