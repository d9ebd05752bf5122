// This file turns the shared options into rows of a Hyperparameters table, and numbers of epochs into numbers of steps.
#include "weft/train/options.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/core/status.h"

namespace weft {
namespace {

int64_t StepsOf(const TrainingOptions& options, int64_t batches_per_epoch) {
  const int64_t steps = options.trainer.steps;
  return options.epochs && steps == 0 ? *options.epochs * batches_per_epoch : steps;
}

RateScheduleSettings ScheduleOf(const TrainingOptions& options, int64_t steps) {
  RateScheduleSettings schedule = options.schedule;
  schedule.warmup = options.warmup.value_or(schedule.warmup);
  schedule.steps = steps;
  return schedule;
}

Hyperparameters ScheduleHyperparameters(TrainingOptions* options) {
  std::vector<std::string> names;
  for (const RateScheduleRow& row : RateSchedules()) names.emplace_back(row.name);
  return {
      {"schedule",
       absl::StrCat("course of the learning rate: ", absl::StrJoin(names, ", "),
                    "; or several with their numbers of steps, such as constant:500,cosine"),
       &options->schedule_name},
      {"learning-rate",
       "highest learning rate, reached at the end of the warm-up",
       &options->schedule.peak,
       {.low = 0}},
      {"min-learning-rate", "learning rate at the end of the training", &options->schedule.floor, {.low = 0}},
      {"warmup-steps",
       "number of steps in which the learning rate rises linearly from 0; 0: no warm-up",
       &options->warmup,
       {.low = 0,
        .high = static_cast<double>(kMaxSteps),
        .unset = [options] { return nlohmann::ordered_json(options->schedule.warmup); }}},
      {"decay-steps",
       "number of steps at the end in which the schedule wsd lowers the rate; below 1, a fraction of all steps",
       &options->schedule.decay,
       {.low = 0, .high = static_cast<double>(kMaxSteps), .needs = "schedule=wsd"}},
      {"plateau-factor",
       "factor by which the schedule plateau reduces the learning rate",
       &options->plateau.factor,
       {.low = 0, .needs = "schedule=plateau"}},
      {"plateau-patience",
       "number of evaluations in a row without a lower loss that the schedule plateau accepts",
       &options->plateau.patience,
       {.low = 0, .needs = "schedule=plateau"}},
      {"plateau-threshold",
       "fraction of the best loss by which a loss must be lower for the schedule plateau",
       &options->plateau.threshold,
       {.low = 0, .needs = "schedule=plateau"}},
  };
}

}  // namespace

Hyperparameters TrainingHyperparameters(TrainingOptions* options) {
  const bool epochs = options->epochs.has_value();
  const double lowest = epochs ? -1 : 0;
  const std::string each = epochs ? "; -1: each epoch" : "";
  const std::string evaluation = "Evaluation and checkpoints";
  TrainerOptions& trainer = options->trainer;
  Hyperparameters table;
  if (epochs) {
    table.push_back({"epochs", "passes over the data", &*options->epochs, {.low = 0, .high = 1e6, .may_change = true}});
  }
  Append(
      {
          {"steps",
           epochs ? "number of updates of the weights; 0: those of all epochs" : "number of updates of the weights",
           &trainer.steps,
           {.low = 0, .high = static_cast<double>(kMaxSteps), .may_change = true}},
      },
      &table);
  Append(InGroup("Learning rate", ScheduleHyperparameters(options)), &table);
  const Hyperparameters run = {
      {"eval-every",
       "steps between evaluations on the validation data; 0: none" + each,
       &trainer.eval_every,
       {.low = lowest, .may_change = true, .group = evaluation}},
      {"checkpoint-every",
       "steps between checkpoints; 0: only at the end and on Ctrl-C" + each,
       &trainer.checkpoint_every,
       {.low = lowest, .may_change = true, .group = evaluation}},
      {"log-every",
       "steps between lines of progress where it goes to a file and not to a terminal; 0: none",
       &options->log_every,
       {.low = 0, .may_change = true}},
      {"threads",
       "number of threads; 0: one for each core, or fewer if more would hardly help. Results do not depend on it",
       &trainer.threads,
       {.low = 0, .high = 1024, .may_change = true}},
      {"precision",
       "bf16: matrix products read and write 16-bit numbers; weights, their updates and the loss stay f32",
       &trainer.precision,
       {.choices = {"f32", "bf16"}}},
      {"memory-budget",
       "maximum bytes for the values of a step, such as 500M; values are computed twice where needed. 0: no maximum. "
       "Results do not depend on it",
       &trainer.memory_budget,
       {.may_change = true, .is_bytes = true}},
      {"seed", "seed of initial weights, batches and dropout", &options->seed},
  };
  table = InGroup("Training", std::move(table));
  Append(InGroup("Run", run), &table);
  Append(InGroup(evaluation, RunOptionRows(&trainer)), &table);
  Append(InGroup("Optimizer", OptimizerHyperparameters(&options->optimizer)), &table);
  return table;
}

absl::Status Validate(const TrainingOptions& options) {
  WEFT_RETURN_IF_ERROR(Validate(options.trainer));
  WEFT_RETURN_IF_ERROR(Validate(options.optimizer));
  const double peak = options.schedule.peak, floor = options.schedule.floor;
  if (floor > peak) {
    return InvalidArgument("min-learning-rate ", floor, " is more than learning-rate ", peak, "; give both");
  }
  if (const std::optional<PlateauSettings> plateau = PlateauOf(options)) WEFT_RETURN_IF_ERROR(Validate(*plateau));
  return ParseRateSchedule(options.schedule_name, options.schedule).status();
}

absl::Status CheckSchedule(const TrainingOptions& options, int64_t batches_per_epoch) {
  RateScheduleSettings schedule = ScheduleOf(options, StepsOf(options, batches_per_epoch));
  if (schedule.steps == 0) return absl::OkStatus();
  if (!options.warmup) schedule.warmup = std::min(schedule.warmup, schedule.steps);
  return CheckLengths(options.schedule_name, schedule);
}

std::optional<PlateauSettings> PlateauOf(const TrainingOptions& options) {
  const RateScheduleRow* const row = FindRateSchedule(options.schedule_name);
  if (row == nullptr || !row->plateau) return std::nullopt;
  PlateauSettings plateau = options.plateau;
  const double peak = options.schedule.peak;
  plateau.min_scale = peak > 0 ? options.schedule.floor / peak : 0;
  return plateau;
}

TrainerOptions ToTrainerOptions(const TrainingOptions& options, int64_t batches_per_epoch) {
  TrainerOptions trainer = options.trainer;
  trainer.steps = StepsOf(options, batches_per_epoch);
  if (options.epochs) {
    for (int64_t* every : {&trainer.eval_every, &trainer.checkpoint_every}) {
      if (*every < 0) *every = batches_per_epoch;
    }
  }
  trainer.optimizer = options.optimizer;
  trainer.plateau = PlateauOf(options);
  trainer.learning_rate = ParseRateSchedule(options.schedule_name, ScheduleOf(options, trainer.steps)).value();
  return trainer;
}

}  // namespace weft
