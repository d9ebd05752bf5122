// This file turns the shared options into rows of a Hyperparameters table, checks them, and turns numbers of epochs
// into numbers of steps.
#include "weft/train/loop/options.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weft/base/status.h"

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

// Returns the settings of the plateau that scales the learning rate, or nothing if the schedule is another.
std::optional<PlateauSettings> PlateauOf(const TrainingOptions& options) {
  const RateScheduleRow* const row = FindRateSchedule(options.schedule_name);
  if (row == nullptr || !row->plateau) return std::nullopt;
  PlateauSettings plateau = options.plateau;
  const double peak = options.schedule.peak;
  plateau.min_scale = peak > 0 ? options.schedule.floor / peak : 0;
  return plateau;
}

Hyperparameters ScheduleHyperparameters(TrainingOptions* options) {
  return {
      {"schedule",
       absl::StrCat("course of the learning rate: ", absl::StrJoin(RowNames(RateSchedules()), ", "),
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

// Returns the rows of the steps and of the files of a run.
Hyperparameters RunHyperparameters(TrainerOptions* options) {
  return {
      {"micro-batches",
       "number of parts into which a batch is divided; a step computes one part after another and needs less memory. "
       "1: the whole batch at once",
       &options->micro_batches,
       {.low = 1, .high = 65536, .group = "Training"}},
      ChoiceRow<DType>("gradient-sums",
                       "dtype in which the gradients of several micro-batches are added, and in which they travel "
                       "between ranks; bf16 halves their memory and rounds each sum",
                       kPrecisionNames, &options->sums, {.needs = "micro-batches", .group = "Training"}),
      {"keep", "number of checkpoints to keep, the newest", &options->keep, {.low = 1, .may_change = true}},
      {"ema",
       "decay rate of an exponential moving average of the weights, such as 0.999; 0: no average",
       &options->ema,
       {.low = 0, .high = 0.99999999}},
      {"metric",
       "metric of evaluations that decides which weights are the best; with ema_, that of the averaged weights",
       &options->metric,
       {.choices = {"val_loss", "val_accuracy", "val_f1", "val_pearson", "val_spearman", "ema_val_loss",
                    "ema_val_accuracy", "ema_val_f1", "ema_val_pearson", "ema_val_spearman"},
        .needs = "save-best or patience"}},
      {"save-best", "keep the weights with the best metric in best.safetensors", &options->save_best},
      {"patience",
       "number of evaluations without a better metric after which the training ends; 0: no such end",
       &options->patience,
       {.low = 0, .may_change = true}},
      {"insights",
       "at each evaluation, write histograms of the weights, their last updates and a sample to insights.jsonl, for "
       "weft report",
       &options->insights,
       {.may_change = true, .needs = "eval-every"}},
      {"tensorboard",
       "write an event file for TensorBoard into the run's folder",
       &options->tensorboard,
       {.may_change = true}},
      {"max-skipped",
       "maximum number of steps in a row that are skipped, for example because the loss is NaN; one more ends the "
       "training",
       &options->max_skipped,
       {.low = 0, .may_change = true, .group = "Training"}},
      {"skip-deviations",
       "skip a step whose loss exceeds the running mean by more than this number of standard deviations; 0: no limit",
       &options->skip_deviations,
       {.low = 0, .group = "Training"}},
  };
}

Hyperparameters OptimizerHyperparameters(OptimizerOptions* options) {
  Hyperparameters table = {
      {"optimizer", "how weights are updated", &options->name, {.choices = RowNames(Optimizers())}}};
  ForEachSetting([&](const auto& setting) {
    std::vector<absl::string_view> users;
    for (const OptimizerRow& row : Optimizers()) {
      if (row.defaults.*setting.value) users.push_back(row.name);
    }
    const auto unset = [options, value = setting.value]() -> nlohmann::ordered_json {
      const auto otherwise = options->Defaults().*value;
      if (!otherwise) return nullptr;
      return *otherwise;
    };
    table.push_back({setting.name,
                     absl::StrCat(setting.help, " (", absl::StrJoin(users, ", "), ")"),
                     &(options->given.*setting.value),
                     {.low = 0, .high = setting.high, .unset = unset}});
  });
  table.push_back({"clip", "maximum global norm of the gradients; 0: no maximum", &options->given.clip, {.low = 0}});
  table.push_back({"clip-value",
                   "maximum absolute value of a gradient's element; 0: no maximum",
                   &options->given.clip_value,
                   {.low = 0}});
  table.push_back({"groups",
                   "other settings for some weights, by patterns on their names: '*.bias:decay=0; wte.*:frozen; "
                   "h.0.*:rate=0.5'; the first match applies",
                   &options->groups,
                   {.may_be_empty = true}});
  return table;
}

}  // namespace

absl::Status Validate(const TrainerOptions& options) {
  if (absl::StartsWith(options.metric, "ema_") && options.ema == 0) {
    return InvalidArgument("metric: ", options.metric, " needs averaged weights; set ema, too");
  }
  if (options.sharding != Sharding::kNone && options.ranks.size() == 1) {
    return InvalidArgument(
        "shard: a single process can't divide its state; start several with mpirun or tools/launch, ",
        "or leave this option out");
  }
  if (options.sharding == Sharding::kWeights && (options.tensorboard || options.insights)) {
    return InvalidArgument(options.tensorboard ? "tensorboard: its histograms need" : "insights: they need",
                           " whole weights, but shard=weights divides them among ranks");
  }
  if (const int ranks = options.ranks.size(); options.micro_batches < ranks) {
    return InvalidArgument("micro-batches: it is ", options.micro_batches, ", but ", ranks,
                           " ranks need at least one micro-batch each; set it to ", ranks,
                           " or more. It does not follow the number of ranks, because it decides the bits of the "
                           "results, and the number of ranks does not");
  }
  const bool evaluates = options.eval_every != 0;
  if (!evaluates && options.patience > 0) return InvalidArgument("patience: it needs evaluations; set eval-every");
  if (!evaluates && options.plateau) {
    return InvalidArgument("schedule: plateau needs evaluations; set eval-every");
  }
  if (!evaluates && options.save_best) return InvalidArgument("save-best: it needs evaluations; set eval-every");
  return absl::OkStatus();
}

std::string IdleTime(int64_t micro_batches, int64_t ranks) {
  const int64_t more = micro_batches % ranks, most = micro_batches / ranks + 1;  // the first `more` ranks have `most`
  if (more == 0) return "";
  const double busy = static_cast<double>(micro_batches) / static_cast<double>(most * ranks);
  return absl::StrFormat("%s %d of %d micro-batches, the others %d: %.0f%% of the ranks' time is idle",
                         more == 1 ? "rank 0 has" : absl::StrCat("ranks 0 to ", more - 1, " have"), most, micro_batches,
                         most - 1, 100 * (1 - busy));
}

OptimizerSettings OptimizerOptions::Defaults() const {
  if (name == initial.row().name) return initial.settings();
  const OptimizerRow* const row = FindOptimizer(name);
  return row != nullptr ? row->defaults : OptimizerSettings();
}

absl::StatusOr<Optimizer> OptimizerOptions::Make() const {
  const OptimizerRow* const row = FindOptimizer(name);
  if (row == nullptr) {
    return InvalidArgument("optimizer: there is no '", name, "'", DidYouMean(name, RowNames(Optimizers())));
  }
  OptimizerSettings settings = Defaults();
  absl::Status status;
  ForEachSetting([&](const auto& setting) {
    const auto value = given.*setting.value;
    if (!value) return;
    if (!(row->defaults.*setting.value)) {
      status.Update(InvalidArgument(setting.name, ": the optimizer ", name, " has no such setting"));
    }
    settings.*setting.value = value;
  });
  WEFT_RETURN_IF_ERROR(status);
  settings.clip = given.clip;
  settings.clip_value = given.clip_value;
  settings.groups = initial.settings().groups;
  if (!groups.empty()) {
    WEFT_ASSIGN_OR_RETURN(settings.groups, ParseParameterGroups(groups));
  }
  return Optimizer(*row, settings);
}

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
  table.push_back(
      {"steps",
       epochs ? "number of updates of the weights; 0: those of all epochs" : "number of updates of the weights",
       &trainer.steps,
       {.low = 0, .high = static_cast<double>(kMaxSteps), .may_change = true}});
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
      ChoiceRow<DType>("precision",
                       "bf16: matrix products, also those of the optimizer muon, read and write 16-bit numbers; "
                       "weights, the optimizer's states and the loss stay f32",
                       kPrecisionNames, &trainer.precision),
      {"memory-budget",
       "maximum bytes for the values of a step, such as 500M; values are computed twice where needed. 0: no maximum. "
       "Results do not depend on it",
       &trainer.memory_budget,
       {.may_change = true, .is_bytes = true}},
      {"seed", "seed of initial weights, batches and dropout", &options->seed},
  };
  table = InGroup("Training", std::move(table));
  Append(InGroup("Run", run), &table);
  Append(InGroup(evaluation, RunHyperparameters(&trainer)), &table);
  Append(InGroup("Optimizer", OptimizerHyperparameters(&options->optimizer)), &table);
  return table;
}

absl::Status Validate(const TrainingOptions& options) {
  WEFT_RETURN_IF_ERROR(Validate(options.trainer));
  WEFT_RETURN_IF_ERROR(options.optimizer.Make().status());
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
