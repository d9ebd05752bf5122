// TrainerOptions are the options of the training loop. RunOptionRows gives the rows by which a command line or a
// configuration file sets those that are not about the learning rate.
//
//   TrainerOptions options = {.steps = 2000, .micro_batches = 4, .patience = 5};
//   options.learning_rate = MakeRateSchedule(*FindRateSchedule("cosine"), {.peak = 1e-3});
#ifndef WEFT_TRAIN_TRAINER_OPTIONS_H_
#define WEFT_TRAIN_TRAINER_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "weft/core/hyperparameters.h"
#include "weft/distributed/ranks.h"
#include "weft/train/learning_rate.h"
#include "weft/train/optimizer.h"
#include "weft/train/plateau.h"
#include "weft/train/sharding.h"

namespace weft {

struct TrainerOptions {
  int64_t steps = 2000;
  RateSchedule learning_rate;              // must be set
  std::optional<PlateauSettings> plateau;  // reduces the learning rate when the validation loss stops falling
  Optimizer optimizer = AdamW({});
  int64_t micro_batches = 1;       // of a step; their gradients are added up before the update
  int64_t eval_every = 500;        // steps between evaluations; 0: none
  int64_t checkpoint_every = 500;  // steps between checkpoints; 0: only at the end and when interrupted
  int64_t keep = 2;                // number of the newest checkpoints that are kept; at least 1
  int64_t threads = 0;             // 0: one for each core; steps take fewer if more would hardly help
  std::string precision = "f32";   // element type for training and evaluation: "f32" or "bf16"
  // kF32 or kBF16: the dtype in which the gradients of several micro-batches are added (StepOptions::sums).
  DType sums = kF32;
  uint64_t memory_budget = 0;  // maximum bytes for the values of a training step; 0: no maximum

  // The ranks that run the training together. All of them give the same options, except threads and memory limits.
  // Rank r computes the micro-batches RowsOf({r, N}, micro_batches) of each step (train/task.h).
  Ranks ranks = {};
  Sharding sharding = Sharding::kNone;  // the state that ranks divide among themselves; changes no bit
  // Steps after which the ranks compare their weights and optimizer state; 0: never. They also compare them before the
  // first step and before each checkpoint. Has no effect on a process that trains alone.
  int64_t check_weights_every = 100;

  // Maximum bytes that a training may allocate for parameters and for the values of its steps; 0: no maximum. A
  // training that needs more does not begin.
  uint64_t memory_limit = 0;

  // Decay rate of an exponential moving average (EMA) of the weights; 0: none. Evaluations then measure the averaged
  // weights, too, and saving writes them to ema.safetensors.
  double ema = 0;
  // The metric of evaluations that decides which weights are the best: "val_loss", "val_accuracy", "val_" and a figure
  // of the task, such as "val_f1", or "ema_" and one of these.
  std::string metric = "val_loss";
  bool save_best = false;  // whether to keep the weights with the best metric in best.safetensors
  int64_t patience = 0;    // evaluations without a better metric after which training ends; 0: no such end

  bool insights = false;     // whether to write insights.jsonl at each evaluation (train/run/insights.h)
  bool tensorboard = false;  // whether to write the run's event file for TensorBoard (train/run/tensorboard.h)

  // A step whose loss or gradients are not finite is skipped: it changes no weight. Training ends after more than
  // `max_skipped` skipped steps in a row.
  int64_t max_skipped = 10;
  // If above 0, a step is also skipped if its loss exceeds the running mean by more than this number of running
  // standard deviations.
  double skip_deviations = 0;
};

// Returns a row for each option from `micro_batches` to `skip_deviations`, except those that TrainingHyperparameters
// (train/options.h) has itself. The rows point into `options`, which must outlive them.
Hyperparameters RunOptionRows(TrainerOptions* options);
// Returns InvalidArgument if options contradict each other, or if there are fewer micro-batches than ranks.
absl::Status Validate(const TrainerOptions& options);
// If ranks have different numbers of micro-batches, describes the idle time: "ranks 0 to 1 have 3 of 8 micro-batches,
// the others 2: 11% of the ranks' time is idle". Otherwise returns "".
std::string IdleTime(int64_t micro_batches, int64_t ranks);

}  // namespace weft

#endif  // WEFT_TRAIN_TRAINER_OPTIONS_H_
