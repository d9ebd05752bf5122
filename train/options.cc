// This file turns the shared options into rows of a Hyperparameters table, and numbers of epochs into numbers of steps.
#include "weft/train/options.h"

#include <limits>
#include <string>

#include "weft/core/status.h"

namespace weft {
namespace {

// Returns a row for each setting that the optimizer uses.
Hyperparameters OptimizerHyperparameters(OptimizerSettings* settings) {
  constexpr double kBelowOne = 0.99999999, kNoLimit = std::numeric_limits<double>::infinity();
  const struct {
    const char *name, *help;
    std::optional<double> OptimizerSettings::*value;
    double high;
  } kRows[] = {
      {"momentum", "decay rate of the running sum of gradients", &OptimizerSettings::momentum, kBelowOne},
      {"beta1", "decay rate of the mean gradient", &OptimizerSettings::beta1, kBelowOne},
      {"beta2", "decay rate of the mean squared gradient", &OptimizerSettings::beta2, kBelowOne},
      {"epsilon", "number that is added to an update's divisor, against division by 0", &OptimizerSettings::epsilon,
       kNoLimit},
      {"weight-decay", "factor of weight decay; adamw and lion apply it to matrices only, not to biases and gains",
       &OptimizerSettings::weight_decay, kNoLimit},
  };
  Hyperparameters table;
  for (const auto& [name, help, member, high] : kRows) {
    std::optional<double>& value = settings->*member;
    if (value) table.push_back({name, help, &*value, {.low = 0, .high = high}});
  }
  table.push_back({"clip", "maximum global norm of the gradients; 0: no maximum", &settings->clip, {.low = 0}});
  return table;
}

}  // namespace

Hyperparameters TrainingHyperparameters(TrainingOptions* options) {
  const bool epochs = options->epochs.has_value();
  const double lowest = epochs ? -1 : 0;
  const std::string each = epochs ? "; -1: each epoch" : "";
  TrainerOptions& trainer = options->trainer;
  Hyperparameters table;
  if (epochs) {
    table.push_back({"epochs", "passes over the data", &*options->epochs, {.low = 0, .high = 1e6, .may_change = true}});
  }
  Append(
      {
          {"steps",
           epochs ? "number of updates; 0: the updates of all epochs" : "number of updates",
           &trainer.steps,
           {.low = 0, .high = static_cast<double>(kMaxSteps), .may_change = true}},
          {"learning-rate",
           "highest learning rate, reached at the end of the warm-up",
           &options->schedule.peak,
           {.low = 0}},
          {"min-learning-rate", "learning rate at the end of the training", &options->schedule.floor, {.low = 0}},
          {"warmup-steps",
           "steps of linear warm-up",
           &options->schedule.warmup,
           {.low = 0, .high = static_cast<double>(kMaxSteps)}},
          {"eval-every",
           "steps between evaluations on the validation data; 0: none" + each,
           &trainer.eval_every,
           {.low = lowest, .may_change = true}},
          {"checkpoint-every",
           "steps between checkpoints; 0: only at the end and on Ctrl-C" + each,
           &trainer.checkpoint_every,
           {.low = lowest, .may_change = true}},
          {"log-every",
           "steps between lines of progress if the output is a file; 0: none",
           &options->log_every,
           {.low = 0, .may_change = true}},
          {"threads",
           "number of threads; 0: one for each core. Results do not depend on it",
           &trainer.threads,
           {.low = 0, .high = 1024, .may_change = true}},
          {"precision",
           "bf16: matrix products read and write 16-bit numbers; weights, their updates and the loss stay f32",
           &trainer.precision,
           {.choices = {"f32", "bf16"}}},
          {"memory-budget",
           "maximum bytes for the values of a step, like 500M; 0: no maximum. Results do not depend on it",
           &trainer.memory_budget,
           {.may_change = true, .is_bytes = true}},
          {"seed", "seed of initial weights, batches and dropout", &options->seed},
      },
      &table);
  Append(RunOptionRows(&trainer), &table);
  Append(OptimizerHyperparameters(&options->optimizer.settings()), &table);
  return table;
}

absl::Status Validate(const TrainingOptions& options) {
  WEFT_RETURN_IF_ERROR(Validate(options.trainer));
  const auto& [peak, floor, warmup, steps] = options.schedule;
  if (floor <= peak) return absl::OkStatus();
  return InvalidArgument("min-learning-rate ", floor, " is more than learning-rate ", peak, "; give both");
}

TrainerOptions ToTrainerOptions(const TrainingOptions& options, int64_t batches_per_epoch) {
  TrainerOptions trainer = options.trainer;
  if (options.epochs) {
    if (trainer.steps == 0) trainer.steps = *options.epochs * batches_per_epoch;
    for (int64_t* every : {&trainer.eval_every, &trainer.checkpoint_every}) {
      if (*every < 0) *every = batches_per_epoch;
    }
  }
  RateScheduleSettings schedule = options.schedule;
  schedule.steps = trainer.steps;
  trainer.optimizer = options.optimizer;
  trainer.learning_rate = MakeRateSchedule(*FindRateSchedule("cosine"), schedule);
  return trainer;
}

void Append(const Hyperparameters& rows, Hyperparameters* table) {
  table->insert(table->end(), rows.begin(), rows.end());
}

}  // namespace weft
