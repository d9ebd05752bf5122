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

absl::StatusOr<RecordedProgram> RecordRunProgram(const GraphChoice& choice) {
  std::map<std::string, std::string> changes = choice.options;
  if (choice.batch > 0) changes["batch"] = absl::StrCat(choice.batch);
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<TrainingJob> made, ReadRun(choice.name, changes));
  auto run = std::make_shared<RunOfGraph>(std::move(made));
  TrainingJob* const job = run->job.get();
  WEFT_RETURN_IF_ERROR(job->Prepare(&run->parameters));
  const TrainerOptions trainer = ToTrainerOptions(job->training(), job->batches_per_epoch());
  StepOptions step = trainer;
  WEFT_ASSIGN_OR_RETURN(TrainingBatch batch, job->Train(choice.step, {0, trainer.micro_batches}));
  const TrainingProgram& program = job->programs()[batch.program];
  WEFT_RETURN_IF_ERROR(program.tape->status());
  batch.program = 0;
  step.micro_batches = 1;
  step.precision = choice.precision.value_or(step.precision);
  return RecordedProgram{run, program, std::move(batch), trainer.optimizer, step};
}

absl::StatusOr<std::unique_ptr<RealGraph>> RecordRun(const GraphChoice& choice) {
  WEFT_ASSIGN_OR_RETURN(const RecordedProgram recorded, RecordRunProgram(choice));
  const TrainingProgram& program = recorded.program;
  const RecordedUpdate update =
      RecordUpdate(program.loss, *recorded.optimizer, {.all_or_none = true, .average_decay = recorded.step.ema});
  WEFT_RETURN_IF_ERROR(program.tape->status());
  auto graph = std::make_unique<RealGraph>();
  graph->tape = program.tape;
  graph->loss = program.loss;
  graph->optimizer = recorded.optimizer;
  graph->options = {.fetch = {program.loss, update.gradient_norm},
                    .update = {update.update},
                    .precision = recorded.step.precision,
                    .memory_budget = recorded.step.memory_budget};
  graph->feeds = recorded.batch.feeds;
  graph->feeds.push_back({update.rate, kLearningRate});
  graph->owner = recorded.owner;
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

bool IsRealGraph(absl::string_view name) {
  const std::vector<std::string> names = RealGraphNames(), more = CalibrationGraphNames(),
                                 large = PredictionGraphNames();
  return std::find(names.begin(), names.end(), name) != names.end() ||
         std::find(more.begin(), more.end(), name) != more.end() ||
         std::find(large.begin(), large.end(), name) != large.end();
}

absl::StatusOr<std::unique_ptr<RealGraph>> RecordGraph(const GraphChoice& choice) {
  if (!IsRealGraph(choice.name) && HoldsRun(choice.name)) return RecordRun(choice);
  WEFT_RETURN_IF_ERROR(CheckRealGraph(choice));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<RealGraph> graph, RecordRealGraph(choice.name, choice.batch));
  graph->options.precision = choice.precision.value_or(kF32);
  return graph;
}

absl::StatusOr<RecordedProgram> RecordProgram(const GraphChoice& choice) {
  if (!IsRealGraph(choice.name) && HoldsRun(choice.name)) return RecordRunProgram(choice);
  WEFT_RETURN_IF_ERROR(CheckRealGraph(choice));
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<RealGraph> graph,
                        RecordRealGraph(choice.name, choice.batch, /*updates=*/false));
  if (!graph->loss) return InvalidArgument(choice.name, " is a forward pass, not a training step");
  WEFT_RETURN_IF_ERROR(graph->tape->status());
  const auto elements = static_cast<int64_t>(graph->tokens.back().size());  // of the targets, the last integer input
  return RecordedProgram{.owner = graph,
                         .program = {.tape = graph->tape, .loss = graph->loss},
                         .batch = {.feeds = graph->feeds, .tokens = elements, .targets = elements},
                         .optimizer = graph->optimizer,
                         .step = {.precision = choice.precision.value_or(kF32)}};
}

}  // namespace weft
