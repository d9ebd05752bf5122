// `weft summary` lists the layers of a model, and tells what the model costs to run and to train.
#include "weft/lab/estimate/summary.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/core/parameters.h"
#include "weft/core/status.h"
#include "weft/formats/weights.h"
#include "weft/graph/compile.h"
#include "weft/lab/graph_choice.h"
#include "weft/train/jobs/read_run.h"

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

// Counts the parameters that training changes. In a run with adapters, these are the adapters' and few others; if the
// run's data can't be read, all parameters count as trained.
TrainedParameters CountTrained(const std::string& path, const ModelSummary& summary) {
  const TrainedParameters all = {.trained = summary.parameters - summary.statistics, .statistics = summary.statistics};
  if (!HoldsRun(path)) return all;
  const absl::StatusOr<std::unique_ptr<TrainingJob>> job = ReadRun(path);
  if (!job.ok() || (*job)->lora().rank == 0) return all;
  Parameters parameters;
  if (!(*job)->Prepare(&parameters).ok()) return all;
  TrainedParameters counts;
  for (const ParameterSpec& spec : (*job)->programs()[0].tape->program().parameters) {
    const int64_t elements = spec.type.shape.elements();
    if (spec.kind == ParameterKind::kWeight) counts.trained += elements;
    if (spec.kind == ParameterKind::kFrozen) counts.frozen += elements;
    if (spec.kind == ParameterKind::kStatistic) counts.statistics += elements;
  }
  return counts;
}

// Returns the training step of a run, or nothing if the model is not a run or if its step can't be recorded or
// compiled.
std::optional<Graph> StepOf(const std::string& path) {
  if (!HoldsRun(path)) return std::nullopt;
  const absl::StatusOr<std::unique_ptr<RealGraph>> step = RecordGraph({.name = path});
  if (!step.ok()) return std::nullopt;
  absl::StatusOr<Graph> graph = Compile(*(*step)->tape, (*step)->options);
  return graph.ok() ? std::optional<Graph>(*std::move(graph)) : std::nullopt;
}

absl::Status Summary(SummaryFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  const std::string& path = flags.argument.empty() ? flags.model : flags.argument;
  if (path.empty()) return InvalidArgument("no model was named, as in `weft summary runs/gpt-1`");
  if (!flags.argument.empty() && !flags.model.empty()) {
    return InvalidArgument("--model=", flags.model, ": another model is named, ", flags.argument);
  }
  WEFT_ASSIGN_OR_RETURN(const PublishedModel model, UsageError(ReadModel(path)));
  WEFT_ASSIGN_OR_RETURN(const ModelSummary summary, Summarize(model));
  const TrainedParameters trained = CountTrained(path, summary);
  const std::optional<Graph> step = StepOf(path);
  const auto print = flags.json ? PrintSummaryJson : PrintSummary;
  std::fputs(print(summary, trained, step ? &*step : nullptr).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

Command SummaryCommand(CLI::App* weft) {
  auto flags = std::make_shared<SummaryFlags>();
  CLI::App* app = AddCommand(weft, "summary", "Lists the layers of a model with their parameters, FLOPs and memory.");
  AddFlags(app, Table(flags.get()), &flags->given);
  app->add_option("model_argument", flags->argument, "a run, a published folder or a file")->type_name("MODEL");
  return {"weft summary",
          app,
          [flags] { return Summary(*flags); },
          "lists a model's layers, parameters, FLOPs and memory",
          {{"Lists the layers of a run's model, with formulas.", "weft summary runs/gpt-1"},
           {"Prints a JSON object.", "weft summary --model=minilm --json"}}};
}

}  // namespace weft
