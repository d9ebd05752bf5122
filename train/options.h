// TrainingOptions are the options that all kinds of training share. TrainingHyperparameters gives the rows by which a
// command line or a configuration file sets them.
//
//   TrainingOptions options = {.optimizer = AdamW({.clip = 1.0}), .schedule = {.peak = 3e-4}};
//   Hyperparameters table = TrainingHyperparameters(&options);      // "steps", "learning-rate", "beta1", ...
//   Trainer::Create(ToTrainerOptions(options, batches_per_epoch), ...);
#ifndef WEFT_TRAIN_OPTIONS_H_
#define WEFT_TRAIN_OPTIONS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "weft/core/hyperparameters.h"
#include "weft/train/learning_rate.h"
#include "weft/train/optimizer.h"
#include "weft/train/trainer_options.h"

namespace weft {

inline constexpr int64_t kMaxSteps = 1 << 24;  // of a training: optimizers count in f32, exact up to 2^24

struct TrainingOptions {
  Optimizer optimizer = AdamW({});
  RateScheduleSettings schedule;  // of the schedule "cosine"; ToTrainerOptions sets its `steps`
  TrainerOptions trainer;         // `learning_rate` is set by ToTrainerOptions
  // Number of passes over the data; unset if the training has no epochs. With epochs, `trainer.steps` = 0 means the
  // steps of all epochs, and `trainer.eval_every` or `trainer.checkpoint_every` < 0 means the end of each epoch.
  std::optional<int64_t> epochs = {};
  uint64_t seed = 1;        // seed of initial weights, batches and dropout
  int64_t log_every = 100;  // steps between lines of progress in a file; 0: none
};

// Returns rows that point into `options`, which must outlive them. The row "epochs" is present if `epochs` is set.
Hyperparameters TrainingHyperparameters(TrainingOptions* options);
// Returns InvalidArgument if the minimum learning rate exceeds the highest.
absl::Status Validate(const TrainingOptions& options);
// Returns the options of a trainer. Sets the learning rate by the schedule "cosine", and turns epochs into steps.
TrainerOptions ToTrainerOptions(const TrainingOptions& options, int64_t batches_per_epoch);

// Appends `rows` to `table`.
void Append(const Hyperparameters& rows, Hyperparameters* table);

}  // namespace weft

#endif  // WEFT_TRAIN_OPTIONS_H_
