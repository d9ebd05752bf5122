// What a training run shows: on a terminal one line that is rewritten, in a file a plain line now and then.
#ifndef WEFT_TRAIN_PROGRESS_H_
#define WEFT_TRAIN_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/string_view.h"
#include "weft/train/metrics.h"

namespace weft {

struct ProgressOptions {
  std::FILE* out = stdout;
  bool terminal = false;    // whether `out` is one
  double between = 0.1;     // seconds that a line on a terminal lasts at least
  int64_t log_every = 100;  // steps between plain lines; 0: none
};

class Progress {
 public:
  explicit Progress(const ProgressOptions& options) : options_(options) {}
  ~Progress() { End(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Begin(int64_t first_step, int64_t steps);
  void Step(int64_t step, const Metrics::Training& training);
  void Evaluation(int64_t step, const Metrics::Validation& validation, double seconds);
  void Say(absl::string_view line);  // a line of its own
  void End();                        // ends the rewritten line

 private:
  using Clock = std::chrono::steady_clock;

  ProgressOptions options_;
  int64_t first_step_ = 0, steps_ = 0;
  Clock::time_point begin_, shown_;
  bool line_open_ = false;
};

// "59s", "1:05", "2:00:07"
std::string FormatDuration(double seconds);
// "step 120/2000  loss 2.3456  rate 9.8e-04  31.2k tokens/s  1:05 left"
std::string FormatStep(int64_t step, int64_t steps, const Metrics::Training& training, double seconds_left);

}  // namespace weft

#endif  // WEFT_TRAIN_PROGRESS_H_
