// The tape of a run's step belongs to its job, which the graph keeps.
#include "weft/lab/graph_choice.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/parameters.h"
#include "weft/core/status.h"
#include "weft/train/jobs/read_run.h"
#include "weft/train/options.h"
#include "weft/train/trainer.h"
#include "weft/train/training_step.h"

namespace weft {
namespace {

constexpr float kLearningRate = 1e-4f;

// What the feeds of a run's step refer to.
struct RunOfGraph {
  std::unique_ptr<TrainingJob> job;
  Parameters parameters;  // for a job that needs weights to make a batch

  explicit RunOfGraph(std::unique_ptr<TrainingJob> j) : job(std::move(j)), parameters({.seed = job->training().seed}) {}
};

absl::StatusOr<std::unique_ptr<RealGraph>> RecordRun(const GraphChoice& choice) {
  std::map<std::string, std::string> changes = choice.options;
  if (choice.batch > 0) changes["batch"] = absl::StrCat(choice.batch);
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<TrainingJob> made, ReadRun(choice.name, changes));
  auto run = std::make_shared<RunOfGraph>(std::move(made));
  TrainingJob* const job = run->job.get();
  WEFT_RETURN_IF_ERROR(job->Prepare(&run->parameters));
  const TrainerOptions trainer = ToTrainerOptions(job->training(), job->batches_per_epoch());
  WEFT_ASSIGN_OR_RETURN(const StepOptions step, ToStepOptions(trainer));
  WEFT_ASSIGN_OR_RETURN(const TrainingBatch batch, job->Train(choice.step, {0, trainer.micro_batches}));
  const TrainingProgram& program = job->programs()[batch.program];
  WEFT_RETURN_IF_ERROR(program.tape->status());
  const RecordedUpdate update =
      RecordUpdate(program.loss, trainer.optimizer, {.all_or_none = true, .average_decay = step.average_decay});
  WEFT_RETURN_IF_ERROR(program.tape->status());
  auto graph = std::make_unique<RealGraph>();
  graph->tape = program.tape;
  graph->loss = program.loss;
  graph->options = {.fetch = {program.loss, update.gradient_norm},
                    .update = {update.update},
                    .precision = choice.precision.value_or(step.precision),
                    .memory_budget = step.memory_budget};
  graph->feeds = batch.feeds;
  graph->feeds.push_back({update.rate, kLearningRate});
  graph->owner = std::move(run);
  return graph;
}

}  // namespace

bool IsRealGraph(absl::string_view name) {
  const std::vector<std::string> names = RealGraphNames(), more = CalibrationGraphNames();
  return std::find(names.begin(), names.end(), name) != names.end() ||
         std::find(more.begin(), more.end(), name) != more.end();
}

absl::StatusOr<std::unique_ptr<RealGraph>> RecordGraph(const GraphChoice& choice) {
  if (!IsRealGraph(choice.name)) {
    if (HoldsRun(choice.name)) return RecordRun(choice);
    return absl::NotFoundError(absl::StrCat(NameAndNearest(choice.name, RealGraphNames()),
                                            ": there is no such run folder, and no such graph among ",
                                            absl::StrJoin(RealGraphNames(), ", ")));
  }
  if (!choice.options.empty() || choice.step > 0) {
    return InvalidArgument("options and steps are those of a run, but ", choice.name, " is a graph of its own");
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<RealGraph> graph, RecordRealGraph(choice.name, choice.batch));
  graph->options.precision = choice.precision.value_or(kF32);
  return graph;
}

}  // namespace weft
