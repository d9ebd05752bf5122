// Metrics are the figures of a training step, a line of metrics.jsonl. The line of step 0 has only the evaluation
// before the first update.
#ifndef WEFT_TRAIN_RUN_METRICS_H_
#define WEFT_TRAIN_RUN_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_METRICS_H_
