// TrainerOptions are the options of the training loop and of its steps.
//
//   TrainerOptions options = {.steps = 2000, .patience = 5};
//   options.micro_batches = 4;
//   options.learning_rate = MakeRateSchedule(*FindRateSchedule("cosine"), {.peak = 1e-3});
#ifndef WEFT_TRAIN_LOOP_TRAINER_OPTIONS_H_
#define WEFT_TRAIN_LOOP_TRAINER_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "weft/train/optimize/learning_rate.h"
#include "weft/train/optimize/optimizer.h"
#include "weft/train/step/step_options.h"

namespace weft {

struct TrainerOptions : StepOptions {
  int64_t steps = 2000;
  RateSchedule learning_rate;              // must be set
  std::optional<PlateauSettings> plateau;  // reduces the learning rate when the validation loss stops falling
  Optimizer optimizer = AdamW({});
  int64_t eval_every = 500;        // steps between evaluations; 0: none
  int64_t checkpoint_every = 500;  // steps between checkpoints; 0: only at the end and when interrupted
  int64_t keep = 2;                // number of the newest checkpoints that are kept; at least 1
  // Steps after which the ranks compare their weights and optimizer state; 0: never. They also compare them before the
  // first step and before each checkpoint. Has no effect on a process that trains alone.
  int64_t check_weights_every = 100;

  // Maximum bytes that a training may allocate for parameters and for the values of its steps; 0: no maximum. A
  // training that needs more does not begin.
  uint64_t memory_limit = 0;

  // The metric of evaluations that decides which weights are the best: "val_loss", "val_accuracy", "val_" and a figure
  // of the task, such as "val_f1", or "ema_" and one of these.
  std::string metric = "val_loss";
  bool save_best = false;  // whether to keep the weights with the best metric in best.safetensors
  int64_t patience = 0;    // evaluations without a better metric after which training ends; 0: no such end

  bool insights = false;     // whether to write insights.jsonl at each evaluation (train/run/run_log.h)
  bool tensorboard = false;  // whether to write the run's event file for TensorBoard (train/run/event_file.h)

  // A step whose loss or gradients are not finite is skipped: it changes no weight. Training ends after more than
  // `max_skipped` skipped steps in a row.
  int64_t max_skipped = 10;
};

// Returns InvalidArgument if options contradict each other, or if there are fewer micro-batches than ranks.
absl::Status Validate(const TrainerOptions& options);
// If ranks have different numbers of micro-batches, describes the idle time: "ranks 0 to 1 have 3 of 8 micro-batches,
// the others 2: 11% of the ranks' time is idle". Otherwise returns "".
std::string IdleTime(int64_t micro_batches, int64_t ranks);

}  // namespace weft

#endif  // WEFT_TRAIN_LOOP_TRAINER_OPTIONS_H_
