// The output file is checked before a step is measured, so that no measurement is lost.
#include "weft/apps/inspect/step_flags.h"

#include <CLI/CLI.hpp>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/apps/streams.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/train/jobs/job_list.h"

namespace weft {

Hyperparameters ChoiceTable(ChoiceFlags* flags) {
  return {{"graph",
           "the model whose training step is taken, if no run is named; default: gpt2",
           &flags->graph,
           {.choices = RealGraphNames()}},
          {"batch", "examples in a batch; 0: the number of the run or model", &flags->batch, {.low = 0, .high = 1e6}},
          {"step",
           "of a run: the training step, counted from 0, whose batch is taken",
           &flags->step,
           {.low = 0, .high = 1e9}},
          {"precision",
           "number format of matrix products and of the values between them; default: that of the run, or f32",
           &flags->precision,
           {.choices = {"f32", "bf16"}}}};
}

void AddRun(CLI::App* app, ChoiceFlags* flags) {
  app->add_option("run", flags->run, "a run's folder, whose training step is taken; or else a name as --graph takes it")
      ->type_name("RUN");
}

absl::StatusOr<GraphChoice> ToChoice(const ChoiceFlags& flags) {
  if (!flags.run.empty() && !flags.graph.empty()) {
    return InvalidArgument("--graph=", flags.graph, ": another graph is named, ", flags.run);
  }
  GraphChoice choice = {.batch = flags.batch, .step = flags.step};
  if (!flags.run.empty()) choice.name = flags.run;
  if (absl::c_linear_search(RealGraphNames(), flags.run) && HoldsRun(flags.run)) {
    choice.name = absl::StrCat("./", flags.run);  // the run, not the graph that has its name
  }
  if (!flags.graph.empty()) choice.name = flags.graph;
  if (!flags.precision.empty()) ParseDType(flags.precision, &choice.precision.emplace());
  return choice;
}

Hyperparameters StepTable(StepFlags* flags, const std::string& out_help) {
  Hyperparameters table = ChoiceTable(&flags->choice);
  Append({{"out", out_help, &flags->out, {.is_path = true}},
          {"overwrite", "replace the output file if it exists", &flags->overwrite},
          {"policy",
           "which ready task runs next; docs/scheduling.md describes the policies",
           &flags->policy,
           {.choices = PolicyNames()}},
          {"costs",
           "a file written by `weft calibrate`, used for priorities and estimates; default: the cost model",
           &flags->costs,
           {.is_path = true}},
          {"threads", "number of workers; 0: the number of cores", &flags->threads, {.low = 0, .high = 1024}},
          {"runs", "number of runs; the last one is written", &flags->runs, {.low = 1, .high = 1000}}},
         &table);
  return table;
}

absl::StatusOr<std::optional<Calibration>> ReadCalibration(const std::string& path) {
  if (path.empty()) return std::nullopt;
  WEFT_ASSIGN_OR_RETURN(const std::string text, UsageError(ReadFile(InputPath(path))));
  return Calibration::FromJson(text, path);
}

absl::StatusOr<std::vector<int>> ParseCounts(const std::string& flag, const std::string& text, int limit) {
  std::set<int> counts;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    int count = 0;
    if (!absl::SimpleAtoi(word, &count) || count < 1 || count > limit) {
      return InvalidArgument("--", flag, ": '", word, "' is not a whole number from 1 to ", limit);
    }
    counts.insert(count);
  }
  return std::vector<int>(counts.begin(), counts.end());
}

absl::StatusOr<StepRun> RunStep(const StepFlags& flags) {
  WEFT_RETURN_IF_ERROR(CheckOut("out", flags.out, flags.overwrite));
  WEFT_RETURN_IF_ERROR(CheckNotOut("costs", flags.costs, flags.out));
  const Policy* const policy = FindPolicy(flags.policy);
  if (!flags.costs.empty() && policy->measured) {
    return InvalidArgument("--costs sets priorities, but --policy=", flags.policy, " takes measured ones");
  }
  WEFT_ASSIGN_OR_RETURN(std::optional<Calibration> calibration, ReadCalibration(flags.costs));
  WEFT_ASSIGN_OR_RETURN(const GraphChoice choice, ToChoice(flags.choice));
  WEFT_ASSIGN_OR_RETURN(TimedStep step, UsageError(TimedStep::Create({.graph = choice,
                                                                      .policy = policy,
                                                                      .threads = static_cast<int>(flags.threads),
                                                                      .calibration = calibration})));
  WEFT_RETURN_IF_ERROR(step.Run(flags.runs));
  return StepRun{choice.name, std::move(step), std::move(calibration)};
}

}  // namespace weft
