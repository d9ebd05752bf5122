// A parameter counts once, although several graphs use it.
#include "weft/lab/estimate/training_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "weft/base/arena.h"
#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/graph/compile/cost.h"
#include "weft/lab/estimate/available_memory.h"
#include "weft/train/loop/evaluator.h"
#include "weft/train/loop/options.h"
#include "weft/train/loop/trainer.h"

namespace weft {
namespace {

// Adds the bytes of parameters and of graphs that have not been added before.
class MemoryCounter {
 public:
  MemoryCounter(int64_t threads, TrainingMemory* memory)
      : threads_(static_cast<uint64_t>(threads > 0 ? threads : Cores())), memory_(memory) {}

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

TrainingCosts CostsOf(const TrainingPlan& plan) {
  TrainingCosts costs;
  const int threads = plan.options.threads > 0 ? static_cast<int>(plan.options.threads) : Cores();
  for (size_t i = 0; i < plan.step->graphs().size(); ++i) {
    const StepGraph& graph = plan.step->graphs()[i];
    const double seconds = GraphSeconds(graph.graph, threads);
    if (i < plan.counts.training.size()) {
      costs.training.push_back(seconds);
    } else {
      costs.others += graph.runs * seconds;
    }
  }
  for (const std::optional<Graph>& graph : plan.evaluations) {
    costs.evaluation.push_back(graph ? GraphSeconds(*graph, threads) : 0);
  }
  costs.step = costs.others;
  for (size_t i = 0; i < costs.training.size(); ++i) {
    const auto runs = static_cast<double>(plan.counts.training[i]);
    costs.step += costs.training[i] * runs / static_cast<double>(std::max<int64_t>(1, plan.options.steps));
  }
  return costs;
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
  const ResidentMemory resident = ReadResidentMemory();
  plan.memory.process = resident.now;
  plan.memory.highest = resident.highest;
  plan.memory.planned = plan.step->planned_bytes();
  MemoryCounter counter(plan.options.threads, &plan.memory);
  for (size_t i = 0; i < plan.step->graphs().size(); ++i) {
    uint64_t unused = 0;
    const bool runs = i >= plan.counts.training.size() || plan.counts.training[i] > 0;
    counter.AddGraph(plan.step->graphs()[i].graph, runs ? &plan.memory.values : &unused);
  }
  for (const ParameterSpec& buffer : plan.step->buffers()) counter.AddParameter(buffer);
  for (const std::optional<Graph>& graph : plan.evaluations) {
    if (graph) counter.AddGraph(*graph, &plan.memory.evaluation);
  }
  plan.costs = CostsOf(plan);
  return plan;
}

}  // namespace weft
