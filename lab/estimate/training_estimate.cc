// A step's cost is the sum over its graphs. The ratio of measured time to cost is a median for each program, because
// long batches use the processor in another way than short ones.
//
// If a step takes long by the cost model, or more memory than there is, a smaller batch is measured. The cost model
// tells how its time compares with that of the whole batch.
#include "weft/lab/estimate/training_estimate.h"

#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/arena.h"
#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/graph/compile/cost.h"
#include "weft/graph/run/runner.h"
#include "weft/lab/estimate/available_memory.h"
#include "weft/lab/machine/measure.h"
#include "weft/train/loop/trainer.h"

namespace weft {
namespace {

// Adds the bytes of parameters and of graphs that have not been added before.
class MemoryCounter {
 public:
  // `threads`: the number of workers of each graph.
  MemoryCounter(int threads, TrainingMemory* memory) : threads_(static_cast<uint64_t>(threads)), memory_(memory) {}

  // `values`: the figure to which the graph's planned values are added.
  void AddGraph(const Graph& graph, uint64_t* values) {
    const CompiledGraph& compiled = graph.compiled();
    *values += compiled.memory.planned;
    for (const ConstantData& constant : compiled.program.constants) memory_->workers += constant.type.bytes();
    memory_->workers += threads_ * compiled.workspace_bytes;
    for (const Node& node : compiled.program.nodes) {
      if (node.op == &kParameterOp) AddParameter(compiled.program.parameter(node));
    }
  }

  void AddParameter(const ParameterSpec& spec) {
    if (!seen_.insert(spec.name).second) return;
    const bool weight = spec.kind == ParameterKind::kWeight || spec.kind == ParameterKind::kFrozen ||
                        spec.kind == ParameterKind::kStatistic;
    uint64_t& bytes = weight ? memory_->weights : spec.kind == ParameterKind::kState ? memory_->state : memory_->values;
    bytes += AlignUp(spec.type.bytes());
  }

 private:
  uint64_t threads_;
  TrainingMemory* memory_;
  absl::flat_hash_set<std::string> seen_;
};

// Returns the seconds of one execution on `threads` workers by the cost model.
double GraphSeconds(const Graph& graph, int threads) {
  return (graph.compiled().seconds() + kTaskSeconds * static_cast<double>(graph.compiled().tasks.size())) / threads;
}

}  // namespace

int64_t CountEvaluations(const TrainerOptions& options, int64_t batches) {
  if (options.eval_every <= 0 || batches == 0) return 0;
  const int64_t after = (options.steps + options.eval_every - 1) / options.eval_every;  // the last step has one, too
  return 1 + (options.ema > 0 ? 2 : 1) * after;
}

absl::StatusOr<TrainingPlan> PlanTraining(TrainingJob* job) {
  TrainingPlan plan = {.options = ToTrainerOptions(job->training(), job->batches_per_epoch())};
  WEFT_ASSIGN_OR_RETURN(plan.step, TrainingStep::Plan(job->programs(), plan.options.optimizer, plan.options));
  WEFT_ASSIGN_OR_RETURN(plan.counts, job->CountPrograms(plan.options.steps));
  plan.evaluated = CountEvaluations(plan.options, job->validation_batches());
  plan.evaluations.resize(job->programs().size());
  for (size_t i = 0; i < plan.evaluations.size() && plan.evaluated > 0; ++i) {
    if (plan.counts.evaluation[i] == 0) continue;
    WEFT_ASSIGN_OR_RETURN(plan.evaluations[i], CompileEvaluation(job->programs()[i], plan.options.precision));
  }
  plan.memory.process = static_cast<uint64_t>(ResidentBytes());
  plan.memory.highest = HighestResidentBytes();
  plan.memory.planned = plan.step->planned_bytes();
  const int threads = plan.options.threads > 0 ? static_cast<int>(plan.options.threads) : Cores();
  MemoryCounter counter(threads, &plan.memory);
  for (size_t i = 0; i < plan.step->graphs().size(); ++i) {
    const StepGraph& graph = plan.step->graphs()[i];
    const bool of_program = i < plan.counts.training.size();
    uint64_t unused = 0;
    counter.AddGraph(graph.graph, of_program && plan.counts.training[i] == 0 ? &unused : &plan.memory.values);
    const double seconds = GraphSeconds(graph.graph, threads);
    if (of_program) {
      plan.costs.training.push_back(seconds);
    } else {
      plan.costs.others += graph.runs * seconds;
    }
  }
  for (const ParameterSpec& buffer : plan.step->buffers()) counter.AddParameter(buffer);
  for (const std::optional<Graph>& graph : plan.evaluations) {
    if (graph) counter.AddGraph(*graph, &plan.memory.evaluation);
    plan.costs.evaluation.push_back(graph ? GraphSeconds(*graph, threads) : 0);
  }
  return plan;
}

namespace {

constexpr double kLearningRate = 1e-4;
constexpr int64_t kTokenSteps = 32;        // steps whose tokens are counted
constexpr int64_t kMaxDrawn = 20'000'000;  // weights: to draw more takes longer than the measurement
constexpr double kEvaluationPart = 0.25;   // of the measurement

// Runs training steps from step 0 on until `seconds` have passed. Returns the medians of the ratios of time to cost,
// and adds the programs that have run to `seen`.
absl::StatusOr<MachineSpeed> MeasureSteps(TrainingJob* job, const TrainingPlan& plan, double seconds,
                                          std::set<size_t>* seen) {
  std::map<size_t, std::vector<double>> ratios;  // by the program of the first micro-batch
  // Runs a step. Returns whether its time counts: no program was new, or it took `long_enough` seconds.
  const auto run_step = [&](int64_t step, double long_enough) -> absl::StatusOr<bool> {
    double cost = plan.costs.others;
    bool is_new = false;
    size_t first = 0;
    const Clock::time_point start = Clock::now();
    const auto next = [&](MicroBatch micro_batch) -> absl::StatusOr<TrainingBatch> {
      WEFT_ASSIGN_OR_RETURN(TrainingBatch batch, job->Train(step, micro_batch));
      if (batch.targets > 0) cost += plan.costs.training[batch.program];
      if (micro_batch.index == 0) first = batch.program;
      is_new |= seen->insert(batch.program).second;
      return batch;
    };
    WEFT_RETURN_IF_ERROR(plan.step->Run(step, kLearningRate, next).status());
    const double took = SecondsSince(start);
    if (is_new && took < long_enough) return false;
    ratios[first].push_back(took / cost);
    return true;
  };
  const int64_t steps = std::max<int64_t>(1, plan.options.steps);
  const Clock::time_point begin = Clock::now();
  for (int64_t s = 0; s < steps && (s == 0 || SecondsSince(begin) < seconds); ++s) {
    const double left = seconds - SecondsSince(begin);
    WEFT_ASSIGN_OR_RETURN(const bool known, run_step(s, /*long_enough=*/left / 2));
    if (!known) WEFT_RETURN_IF_ERROR(run_step(s, left / 2).status());
  }
  MachineSpeed speed;
  std::vector<double> all;
  for (const auto& [program, of_program] : ratios) {
    speed.programs[program] = Median(of_program);
    all.insert(all.end(), of_program.begin(), of_program.end());
  }
  speed.training = Median(all);
  speed.steps = static_cast<int64_t>(all.size());
  return speed;
}

// Returns the ratio of time to cost of validation batches.
absl::StatusOr<double> MeasureEvaluation(TrainingJob* job, const TrainingPlan& plan, Parameters* parameters,
                                         double seconds) {
  std::vector<std::unique_ptr<Runner>> runners(plan.evaluations.size());
  std::vector<double> ratios;
  const Clock::time_point begin = Clock::now();
  for (int64_t i = 0; i < job->validation_batches() && (ratios.empty() || SecondsSince(begin) < seconds); ++i) {
    for (bool counts = false; !counts;) {
      const Clock::time_point start = Clock::now();
      WEFT_ASSIGN_OR_RETURN(const TrainingBatch batch, job->Validate(0, i));
      if (batch.targets == 0) break;
      std::unique_ptr<Runner>& runner = runners[batch.program];
      counts = runner != nullptr;
      if (!counts) {
        runner = std::make_unique<Runner>(*plan.evaluations[batch.program], parameters,
                                          RunnerOptions{.threads = static_cast<int>(plan.options.threads)});
      }
      WEFT_RETURN_IF_ERROR(runner->Run(batch.feeds).status());
      if (counts) ratios.push_back(SecondsSince(start) / plan.costs.evaluation[batch.program]);
    }
  }
  return ratios.empty() ? 1 : Median(ratios);
}

// Allocates the step of `plan`, runs it, and then destroys it. Runs training steps and validation batches of `job` for
// about `seconds` seconds. The first step of each program is not measured, because it touches memory for the first
// time, unless it is long.
absl::StatusOr<MachineSpeed> MeasureSpeed(TrainingJob* job, TrainingPlan* plan, double seconds) {
  int64_t weights = 0;
  for (const ParameterSpec& spec : job->programs()[0].tape->program().parameters) {
    weights += spec.type.shape.elements();
  }
  Parameters parameters({.seed = job->training().seed, .draw = weights <= kMaxDrawn});
  const auto before = static_cast<uint64_t>(ResidentBytes());
  WEFT_RETURN_IF_ERROR(plan->step->Allocate(&parameters));
  const bool evaluates = plan->evaluated > 0;
  std::set<size_t> seen;
  WEFT_ASSIGN_OR_RETURN(MachineSpeed speed,
                        MeasureSteps(job, *plan, seconds * (evaluates ? 1 - kEvaluationPart : 1), &seen));
  const TrainingMemory& memory = plan->memory;
  uint64_t touched = memory.allocated() - memory.evaluation;  // what evaluations allocate is free again
  for (size_t i = 0; i < plan->counts.training.size(); ++i) {
    if (plan->counts.training[i] == 0 || seen.contains(i)) continue;
    touched -= plan->step->graphs()[i].graph.compiled().memory.planned;
  }
  if (evaluates) {
    WEFT_ASSIGN_OR_RETURN(speed.evaluation, MeasureEvaluation(job, *plan, &parameters, seconds * kEvaluationPart));
  }
  const auto after = static_cast<uint64_t>(ResidentBytes());
  speed.code = after - std::min(after, before + touched);
  plan->step.reset();  // before the parameters
  return speed;
}

// Returns the seconds of an average step of the run.
double StepSeconds(const TrainingPlan& plan, const MachineSpeed& speed) {
  const TrainingCosts& costs = plan.costs;
  const auto steps = static_cast<double>(std::max<int64_t>(1, plan.options.steps));
  double seconds = costs.others * speed.training;
  for (size_t i = 0; i < costs.training.size(); ++i) {
    const auto own = speed.programs.find(i);
    const double ratio = own != speed.programs.end() ? own->second : speed.training;
    seconds += ratio * costs.training[i] * static_cast<double>(plan.counts.training[i]) / steps;
  }
  return seconds;
}

absl::StatusOr<TrainingTime> EstimateTime(TrainingJob* job, const TrainingPlan& plan, const MachineSpeed& speed) {
  TrainingTime time = {
      .steps = plan.options.steps, .evaluations = plan.evaluated, .step_seconds = StepSeconds(plan, speed)};
  for (size_t i = 0; i < plan.costs.evaluation.size(); ++i) {
    const auto runs = static_cast<double>(plan.counts.evaluation[i]);
    time.evaluation_seconds += speed.evaluation * plan.costs.evaluation[i] * runs;
  }
  double tokens = 0;
  const int64_t counted = std::min(kTokenSteps, time.steps), micro_batches = plan.options.micro_batches;
  for (int64_t step = 0; step < counted; ++step) {
    for (int64_t i = 0; i < micro_batches; ++i) {
      WEFT_ASSIGN_OR_RETURN(const TrainingBatch batch, job->Train(step, {i, micro_batches}));
      tokens += static_cast<double>(batch.tokens);
    }
  }
  if (counted > 0) tokens /= static_cast<double>(counted);
  time.tokens_per_second = tokens / time.step_seconds;
  return time;
}

constexpr uint64_t kSavingBytes = 1'000'000;  // 1 MB: code and buffers of saving, which a measurement does not run
constexpr double kLongStep = 0.4;             // seconds of the cost model as a fraction of the measurement's
constexpr int64_t kMaxMicroBatches = 64;      // more of them are hardly ever wanted

// A prepared job with its plan.
struct PlannedJob {
  std::unique_ptr<TrainingJob> job;
  std::unique_ptr<Parameters> parameters;
  TrainingPlan plan;
};

absl::StatusOr<PlannedJob> PlanJob(JobFactory make, const OptionTexts& changes) {
  PlannedJob planned;
  WEFT_ASSIGN_OR_RETURN(planned.job, make(changes));
  planned.parameters = std::make_unique<Parameters>(Parameters::Options{.seed = planned.job->training().seed});
  WEFT_RETURN_IF_ERROR(planned.job->Prepare(planned.parameters.get()));
  WEFT_ASSIGN_OR_RETURN(planned.plan, PlanTraining(planned.job.get()));
  return planned;
}

// Returns the number of examples of a batch that is fast and small enough to measure.
int64_t MeasuredBatch(const TrainingPlan& plan, int64_t batch, const EstimateOptions& options) {
  double fraction = std::min(1.0, kLongStep * options.seconds / StepSeconds(plan, /*speed=*/{}));
  const TrainingMemory& memory = plan.memory;
  const auto available = static_cast<double>(options.available);
  if (options.available > 0 && memory.allocated() > options.available) {
    const double fixed = static_cast<double>(memory.weights + memory.state);
    const double room = std::max(0.0, available - fixed) / static_cast<double>(memory.allocated() - memory.weights);
    fraction = std::min(fraction, room);
  }
  return std::max<int64_t>(1, static_cast<int64_t>(fraction * static_cast<double>(batch)));
}

}  // namespace

std::vector<SmallerTraining> FindSmallerTrainings(JobFactory make, uint64_t limit) {
  std::vector<SmallerTraining> found;
  // Adds the training with the change if it fits. Returns whether it was planned, but does not fit.
  const auto try_change = [&](const std::string& flag, const std::string& text) {
    const absl::StatusOr<PlannedJob> changed = PlanJob(make, {{flag, text}});
    if (!changed.ok()) return false;
    const uint64_t bytes = changed->plan.step->allocated_bytes();
    if (bytes <= limit) found.push_back({flag, text, bytes});
    return bytes > limit;
  };
  const absl::StatusOr<std::unique_ptr<TrainingJob>> job = make({});
  if (!job.ok()) return found;
  const int64_t batch = (*job)->batch();
  const TrainerOptions& options = (*job)->training().trainer;
  for (int64_t smaller = batch / 2; smaller >= 1; smaller /= 2) {
    if (!try_change("batch", absl::StrCat(smaller))) break;
  }
  for (int64_t more = 2 * options.micro_batches; more <= std::min(batch, kMaxMicroBatches); more *= 2) {
    if (!try_change("micro-batches", absl::StrCat(more))) break;
  }
  if (options.precision == kF32) try_change("precision", "bf16");
  // A budget of what is left beside weights and state; it is not found if the graph can't keep within it.
  const absl::StatusOr<PlannedJob> planned = PlanJob(make, {});
  if (planned.ok() && planned->plan.step->graphs().size() == 1) {
    const uint64_t fixed = planned->plan.step->allocated_bytes() - planned->plan.memory.planned;
    if (limit > fixed) try_change("memory-budget", absl::StrCat(limit - fixed));
  }
  return found;
}

std::string ListTrainings(const std::vector<SmallerTraining>& trainings) {
  std::string text;
  for (const SmallerTraining& each : trainings) {
    absl::StrAppendFormat(&text, "%s--%s=%s (%.1f MB)", text.empty() ? "; these would fit: " : ", ", each.flag,
                          each.text, static_cast<double>(each.bytes) * 1e-6);
  }
  return text;
}

absl::StatusOr<TrainingEstimate> EstimateTraining(JobFactory make, const EstimateOptions& options) {
  WEFT_ASSIGN_OR_RETURN(PlannedJob planned, PlanJob(make, {}));
  TrainingEstimate estimate;
  estimate.memory = planned.plan.memory;
  estimate.batch = planned.job->batch();
  if (options.seconds > 0) {
    const int64_t micro_batches = planned.plan.options.micro_batches;
    estimate.measured_batch = MeasuredBatch(planned.plan, estimate.batch, options);
    if (estimate.measured_batch == estimate.batch) {
      WEFT_ASSIGN_OR_RETURN(estimate.speed, MeasureSpeed(planned.job.get(), &planned.plan, options.seconds));
    } else {
      const int64_t fewer = std::max<int64_t>(1, micro_batches * estimate.measured_batch / estimate.batch);
      WEFT_ASSIGN_OR_RETURN(PlannedJob smaller, PlanJob(make, {{"batch", absl::StrCat(estimate.measured_batch)},
                                                               {"micro-batches", absl::StrCat(fewer)}}));
      if (options.available == 0 || smaller.plan.memory.allocated() <= options.available) {
        WEFT_ASSIGN_OR_RETURN(estimate.speed, MeasureSpeed(smaller.job.get(), &smaller.plan, options.seconds));
        estimate.speed.programs.clear();  // these are programs of another batch
      }
    }
    if (estimate.speed.steps == 0) {
      estimate.measured_batch = 0;
    } else {
      estimate.memory.code = estimate.speed.code + kSavingBytes;
    }
  }
  WEFT_ASSIGN_OR_RETURN(estimate.time, EstimateTime(planned.job.get(), planned.plan, estimate.speed));
  return estimate;
}

}  // namespace weft
