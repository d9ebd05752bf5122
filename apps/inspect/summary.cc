// `weft summary` lists the layers of a model, and tells what the model costs to run and to train.
#include "weft/lab/estimate/summary.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/formats/weights.h"
#include "weft/graph/compile/compile.h"
#include "weft/lab/real_graphs.h"
#include "weft/train/jobs/job_list.h"
#include "weft/train/optimize/optimizer.h"

namespace weft {
namespace {

struct SummaryFlags {
  std::string model, argument;
  bool json = false;
  GivenFlags given;
};

Hyperparameters Table(SummaryFlags* flags) {
  return {{"model", "a run, a published folder or a file; may also stand without the flag", &flags->model},
          {"json", "print a JSON object", &flags->json}};
}

// Counts the parameters that training changes. `step`: the training step of a run, or null. Adapters freeze the
// model's own weights, and groups those that they name. Without a step, all parameters count as trained.
TrainedParameters CountTrained(const ModelSummary& summary, const RealGraph* step) {
  const TrainedParameters all = {.trained = summary.parameters - summary.statistics, .statistics = summary.statistics};
  TrainedParameters counts;
  for (const ParameterSpec& spec : step == nullptr ? std::vector<ParameterSpec>() : step->tape->program().parameters) {
    const int64_t elements = spec.type.shape.elements();
    const bool frozen = IsFrozen(step->optimizer->settings().groups, spec.name);
    if (spec.kind == ParameterKind::kWeight) (frozen ? counts.frozen : counts.trained) += elements;
    if (spec.kind == ParameterKind::kFrozen) counts.frozen += elements;
    if (spec.kind == ParameterKind::kStatistic) counts.statistics += elements;
  }
  return counts.frozen > 0 ? counts : all;
}

absl::Status Summary(const SummaryFlags& flags) {
  const std::string& path = flags.argument.empty() ? flags.model : flags.argument;
  if (path.empty()) return InvalidArgument("no model was named, as in `weft summary runs/gpt-1`");
  if (!flags.argument.empty() && !flags.model.empty()) {
    return InvalidArgument("--model=", flags.model, ": another model is named, ", flags.argument);
  }
  WEFT_ASSIGN_OR_RETURN(const PublishedModel model, UsageError(ReadModel(path)));
  WEFT_ASSIGN_OR_RETURN(const ModelSummary summary, Summarize(model));
  std::unique_ptr<RealGraph> step;  // null if the model is no run, or if the run's data can't be read
  if (HoldsRun(path)) step = RecordGraph(*ToChoice({.run = path})).value_or(nullptr);
  const absl::StatusOr<Graph> graph = step == nullptr ? absl::NotFoundError("") : Compile(*step->tape, step->options);
  const auto print = flags.json ? PrintSummaryJson : PrintSummary;
  std::fputs(print(summary, CountTrained(summary, step.get()), graph.ok() ? &*graph : nullptr).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

Command SummaryCommand(CLI::App* weft, const std::string& name) {
  auto flags = std::make_shared<SummaryFlags>();
  Command command = MakeCommand(weft, name,
                                {"Lists the layers of a model with their parameters, FLOPs and memory.",
                                 "lists a model's layers, parameters, FLOPs and memory",
                                 {{"Lists the layers of a run's model.", "weft summary runs/gpt-1"},
                                  {"Prints a JSON object.", "weft summary --model=minilm --json"}}},
                                flags, Table, Summary);
  command.app->add_option("model_argument", flags->argument, "a run, a published folder or a file")->type_name("MODEL");
  return command;
}

}  // namespace weft
