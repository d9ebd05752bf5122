// TrainerOptions are the options of the training loop and of its steps. TrainingOptions are the options that all kinds
// of training share. TrainingHyperparameters gives the rows by which a command line or a configuration file sets them.
//
//   TrainingOptions options = {.optimizer = AdamW({.clip = 1.0}), .schedule = {.peak = 3e-4}};
//   Hyperparameters table = TrainingHyperparameters(&options);      // "steps", "learning-rate", "beta1", ...
//   Trainer::Create(ToTrainerOptions(options, batches_per_epoch), ...);
#ifndef WEFT_TRAIN_LOOP_OPTIONS_H_
#define WEFT_TRAIN_LOOP_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/options/hyperparameters.h"
#include "weft/train/optimize/learning_rate.h"
#include "weft/train/optimize/optimizer.h"
#include "weft/train/step/step_options.h"

namespace weft {

inline constexpr int64_t kMaxSteps = 1 << 24;  // of a training: optimizers count in f32, exact up to 2^24

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

// The choice of an optimizer by name, its settings, and parameter groups.
//
//   OptimizerOptions options = AdamW({.beta2 = 0.99, .clip = 1.0});   // the default of a training
//   const Optimizer optimizer = options;
struct OptimizerOptions {
  // NOLINTNEXTLINE(google-explicit-constructor): options are written {.optimizer = AdamW({...})}
  OptimizerOptions(const Optimizer& initial)
      : name(initial.row().name),
        given{.clip = initial.settings().clip, .clip_value = initial.settings().clip_value},
        initial(initial) {}

  std::string name;         // of a row of Optimizers()
  OptimizerSettings given;  // a setting without a value has that of Defaults()
  std::string groups;       // as ParseParameterGroups reads them; empty: those of `initial`
  Optimizer initial;

  // Returns the settings of `initial` if it has this name, else the default settings of the optimizer `name`.
  OptimizerSettings Defaults() const;
  // Returns the optimizer. Returns InvalidArgument if there is no such optimizer, if a setting is given that it does
  // not use, or if the groups can't be read.
  absl::StatusOr<Optimizer> Make() const;
  // Returns the optimizer of valid options.
  operator Optimizer() const { return Make().value(); }  // NOLINT(google-explicit-constructor): they stand for it
};

struct TrainingOptions {
  OptimizerOptions optimizer = AdamW({});
  RateScheduleSettings schedule;         // ToTrainerOptions sets its `steps`
  std::string schedule_name = "cosine";  // or several, as ParseRateSchedule reads them
  std::optional<int64_t> warmup = {};    // unset: schedule.warmup
  PlateauSettings plateau;               // of the schedule "plateau"
  TrainerOptions trainer;                // `learning_rate` is set by ToTrainerOptions
  // Number of passes over the data; unset if the training has no epochs. With epochs, `trainer.steps` = 0 means the
  // steps of all epochs, and `trainer.eval_every` or `trainer.checkpoint_every` < 0 means the end of each epoch.
  std::optional<int64_t> epochs = {};
  uint64_t seed = 1;        // seed of initial weights, batches and dropout
  int64_t log_every = 100;  // steps between lines of progress in a file; 0: none
};

// Returns InvalidArgument if options contradict each other, or if there are fewer micro-batches than ranks.
absl::Status Validate(const TrainerOptions& options);
// If ranks have different numbers of micro-batches, describes the idle time: "ranks 0 to 1 have 3 of 8 micro-batches,
// the others 2: 11% of the ranks' time is idle". Otherwise returns "".
std::string IdleTime(int64_t micro_batches, int64_t ranks);

// Returns rows that point into `options`, which must outlive them. The row "epochs" is present if `epochs` is set.
Hyperparameters TrainingHyperparameters(TrainingOptions* options);
// Returns InvalidArgument if the minimum learning rate exceeds the highest, or if the optimizer or the schedule is
// invalid.
absl::Status Validate(const TrainingOptions& options);
// Returns InvalidArgument if `options.warmup` or the parts of the schedule take more steps than the training. The
// default warm-up may be longer: a short training ends within it.
absl::Status CheckSchedule(const TrainingOptions& options, int64_t batches_per_epoch);
// Returns the options of a trainer. Sets the learning rate by the schedule, and turns epochs into steps. `options` must
// be valid.
TrainerOptions ToTrainerOptions(const TrainingOptions& options, int64_t batches_per_epoch);

}  // namespace weft

#endif  // WEFT_TRAIN_LOOP_OPTIONS_H_
