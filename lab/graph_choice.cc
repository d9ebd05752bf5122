// The tape of a run's step belongs to its job, which the graph keeps.
#include "weft/lab/graph_choice.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/core/hyperparameters.h"
#include "weft/core/parameters.h"
#include "weft/core/status.h"
#include "weft/train/jobs/job_list.h"
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

absl::StatusOr<std::unique_ptr<RealGraph>> RecordRun(const GraphChoice& choice, bool updates) {
  std::map<std::string, std::string> changes = choice.options;
  if (choice.batch > 0) changes["batch"] = absl::StrCat(choice.batch);
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<TrainingJob> made, ReadRun(choice.name, changes));
  auto run = std::make_shared<RunOfGraph>(std::move(made));
  TrainingJob* const job = run->job.get();
  WEFT_RETURN_IF_ERROR(job->Prepare(&run->parameters));
  const TrainerOptions trainer = ToTrainerOptions(job->training(), job->batches_per_epoch());
  auto graph = std::make_unique<RealGraph>();
  graph->owner = run;
  graph->optimizer = trainer.optimizer;
  graph->step = trainer;
  graph->step.micro_batches = 1;
  WEFT_ASSIGN_OR_RETURN(graph->batch, job->Train(choice.step, {0, trainer.micro_batches}));
  const TrainingProgram& program = job->programs()[graph->batch.program];
  graph->batch.program = 0;
  graph->tape = program.tape;
  graph->loss = program.loss;
  if (updates) {
    const RecordedUpdate update =
        RecordUpdate(program.loss, trainer.optimizer, {.all_or_none = true, .average_decay = graph->step.ema});
    graph->options = {.fetch = {program.loss, update.gradient_norm},
                      .update = {update.update},
                      .memory_budget = graph->step.memory_budget};
    graph->batch.feeds.push_back({update.rate, kLearningRate});
  }
  return graph;
}

// Returns an error unless `choice` names a graph of lab/real_graphs.h and has no options of a run.
absl::Status CheckRealGraph(const GraphChoice& choice) {
  if (!IsRealGraph(choice.name)) {
    return absl::NotFoundError(absl::StrCat(NameAndNearest(choice.name, RealGraphNames()),
                                            ": there is no such run folder, and no such graph among ",
                                            absl::StrJoin(RealGraphNames(), ", ")));
  }
  if (!choice.options.empty() || choice.step > 0) {
    return InvalidArgument("options and steps are those of a run, but ", choice.name, " is a graph of its own");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RealGraph>> RecordGraph(const GraphChoice& choice, bool updates) {
  const bool run = !IsRealGraph(choice.name) && HoldsRun(choice.name);
  if (!run) WEFT_RETURN_IF_ERROR(CheckRealGraph(choice));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<RealGraph> graph,
                        run ? RecordRun(choice, updates) : RecordRealGraph(choice.name, choice.batch, updates));
  WEFT_RETURN_IF_ERROR(graph->tape->status());
  graph->step.precision = graph->options.precision = choice.precision.value_or(graph->step.precision);
  return graph;
}

}  // namespace weft
