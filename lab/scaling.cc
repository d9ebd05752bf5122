// Executions of all cases take turns, so that a change in the machine's load affects all cases alike.
#include "weft/lab/scaling.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/graph/compile/speedup.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/timed_step.h"

namespace weft {
namespace {

// Returns the seconds of an execution, after a first execution that touches the memory. A policy that learns gets a
// second execution before the timed one, which then does not use durations that were measured with cold memory. If
// `times` is not null, also measures the tiles, and adds the execution to `times`.
absl::StatusOr<double> TimedRun(const Graph& graph, const TimedStep& step, RunnerOptions options, RunTimes* times) {
  options.timed = times != nullptr;
  Runner runner(graph, step.parameters(), options);
  for (int i = 0; i < (options.policy->learns ? 2 : 1); ++i) {
    WEFT_RETURN_IF_ERROR(runner.Run(step.feeds()).status());
  }
  const Clock::time_point start = Clock::now();
  WEFT_RETURN_IF_ERROR(runner.Run(step.feeds()).status());
  const double seconds = SecondsSince(start);
  if (times != nullptr) times->Add(runner.tile_times());
  return seconds;
}

// Returns a name for each task: its ops and the scope of the first op, as in "matmul + add @ gpt/h.0". A join is called
// "join".
std::vector<std::string> TaskNames(const Graph& graph) {
  const CompiledGraph& compiled = graph.compiled();
  std::vector<std::string> names;
  for (const Task& task : compiled.tasks) {
    std::string& name = names.emplace_back(task.group == Task::kJoin ? "join" : "");
    if (task.group == Task::kJoin) continue;
    const Group& group = compiled.groups[task.group];
    for (uint32_t c = group.first_call; c < group.end_call(); ++c) {
      absl::StrAppend(&name, c == group.first_call ? "" : " + ",
                      compiled.program.node(compiled.calls[c].node).op->name);
    }
    absl::StrAppend(&name, " @ ", compiled.program.scope(compiled.program.node(compiled.calls[group.first_call].node)));
  }
  return names;
}

}  // namespace

std::vector<ScalingCase> ScalingCases(absl::string_view policy, absl::Span<const int> workers) {
  std::vector<ScalingCase> cases;
  for (const Policy* const each : Policies()) {
    if (policy != "all" && policy != each->name) continue;
    for (const int count : workers) cases.push_back({.policy = each, .workers = count});
  }
  return cases;
}

absl::StatusOr<Workload> MeasureWorkload(const WorkloadOptions& options, absl::Span<ScalingCase> cases) {
  WEFT_ASSIGN_OR_RETURN(
      const TimedStep step,
      TimedStep::Create({.graph = options.graph, .threads = 1, .tile_seconds = options.tile_seconds}));
  WEFT_ASSIGN_OR_RETURN(const Graph measured, WithMeasuredTimes(step.graph(), step.feeds(), step.parameters()));
  RunTimes times;
  while (times.runs() < options.runs) {
    WEFT_RETURN_IF_ERROR(TimedRun(step.graph(), step, {.threads = 1}, &times).status());
    for (ScalingCase& each : cases) {
      if (each.workers > Cores()) continue;
      WEFT_ASSIGN_OR_RETURN(const double seconds, TimedRun(each.policy->measured ? measured : step.graph(), step,
                                                           {.threads = each.workers, .policy = each.policy}, nullptr));
      each.seconds.push_back(seconds);
    }
  }
  const Graph graph = options.reuse ? step.graph() : WithoutReuse(step.graph());
  const std::vector<double> seconds = TaskSeconds(graph, times.tiles());
  return Workload{.schedule = graph.compiled().schedule,
                  .measured_schedule = WithTimes(graph, seconds).compiled().schedule,
                  .costs = TaskCosts(graph, seconds, options.cache_bytes),
                  .names = TaskNames(graph)};
}

SimulatedMachine MachineOf(absl::Span<const SharingRow> sharing, int workers) {
  SimulatedMachine machine = {.workers = workers};
  if (sharing.empty()) return machine;
  const SharingRow row = SharingOf(sharing, workers);
  machine.wake_seconds = workers > 1 ? row.wake_seconds : 0;
  machine.moved_byte_seconds = row.moved_byte_seconds;
  for (int n = 1; n <= workers && row.flops > 0; ++n) {
    machine.slowdowns.push_back(std::max(1.0, SharingOf(sharing, 1).flops * n / SharingOf(sharing, n).flops));
  }
  if (row.bytes == 0) return machine;
  machine.worker_bandwidth = SharingOf(sharing, 1).bytes;
  machine.bandwidth = std::max(row.bytes, machine.worker_bandwidth);
  return machine;
}

Simulation Predict(const Workload& workload, const ScalingCase& scaling_case, absl::Span<const SharingRow> sharing) {
  const Policy& policy = *scaling_case.policy;
  const bool by_times = policy.measured || policy.learns;
  return Simulate(by_times ? workload.measured_schedule : workload.schedule, workload.costs, policy,
                  MachineOf(sharing, scaling_case.workers));
}

std::vector<Prediction> PredictAll(const Workload& workload, absl::Span<const ScalingCase> cases,
                                   absl::Span<const SharingRow> sharing) {
  const double seconds = workload.seconds();
  std::map<int, double> bounds;  // by number of workers
  for (const ScalingCase& each : cases) {
    double& bound = bounds[each.workers];
    if (bound == 0) bound = MakespanBound(workload.schedule, workload.costs, MachineOf(sharing, each.workers));
  }
  std::vector<Prediction> predictions;
  bool saturated = false;  // whether an earlier prediction for the policy is saturated
  for (const ScalingCase& each : cases) {
    const Simulation run = Predict(workload, each, sharing);
    Prediction prediction = {.policy = each.policy,
                             .workers = each.workers,
                             .makespan = run.makespan,
                             .speedup = seconds / run.makespan,
                             .utilization = run.utilization,
                             .bound = bounds[each.workers]};
    if (!each.seconds.empty()) prediction.measured = Median(each.seconds);
    if (predictions.empty() || predictions.back().policy != each.policy) {
      saturated = false;
    } else if (!saturated) {
      saturated = prediction.saturated = predictions.back().makespan / run.makespan < kMinSpeedup;
    }
    predictions.push_back(prediction);
  }
  return predictions;
}

}  // namespace weft
