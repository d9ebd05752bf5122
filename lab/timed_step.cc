// Executions of all cases take turns, so that a change in the machine's load affects all cases alike. Reading a file of
// tasks checks every field, so that a wrong file gives an error with its location, not a wrong simulation.
#include "weft/lab/timed_step.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/cores.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/compile/speedup.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/page.h"

namespace weft {

absl::StatusOr<TimedStep> TimedStep::Create(const TimedStepOptions& options) {
  TimedStep step;
  WEFT_ASSIGN_OR_RETURN(step.recorded_, RecordGraph(options.graph));
  RealGraph& recorded = *step.recorded_;
  if (options.tile_seconds > 0) recorded.options.tile_seconds = options.tile_seconds;
  WEFT_ASSIGN_OR_RETURN(step.graph_, Compile(*recorded.tape, recorded.options));
  step.parameters_ = std::make_unique<Parameters>(Parameters::Options{.seed = 1});
  step.policy_ = options.policy;
  if (options.policy->measured) {
    WEFT_ASSIGN_OR_RETURN(step.graph_, WithMeasuredTimes(*step.graph_, recorded.batch.feeds, step.parameters_.get()));
  } else if (options.calibration) {
    step.graph_ = WithTimes(*step.graph_, options.calibration->TaskSeconds(*step.graph_));
  }
  step.threads_ = options.policy == &kSerial ? 1 : options.threads > 0 ? options.threads : Cores();
  return step;
}

absl::Status TimedStep::Run(int64_t runs) {
  Runner runner(*graph_, parameters_.get(), {.threads = threads_, .policy = policy_, .timed = true});
  for (int64_t run = 0; run < runs; ++run) {
    const Clock::time_point start = Clock::now();
    WEFT_RETURN_IF_ERROR(runner.Run(feeds()).status());
    seconds_ = SecondsSince(start);
  }
  tiles_ = {runner.tile_times().begin(), runner.tile_times().end()};
  return absl::OkStatus();
}

double TimedStep::utilization() const {
  double busy = 0;
  for (const TileTime& tile : tiles_) {
    if (tile.worker >= 0) busy += static_cast<double>(tile.end - tile.begin) * 1e-9;  // else a message
  }
  return busy / (threads_ * seconds_);
}

absl::StatusOr<std::vector<double>> TimedStep::TimingOverhead(int64_t pairs) const {
  const auto make = [&](bool timed) {
    return std::make_unique<Runner>(*graph_, parameters_.get(),
                                    RunnerOptions{.threads = threads_, .policy = policy_, .timed = timed});
  };
  const std::unique_ptr<Runner> runners[] = {make(false), make(true)};
  std::vector<double> ratios;
  for (int64_t pair = -1; pair < pairs; ++pair) {  // the first pair is not counted, because it touches memory first
    double seconds[2];
    for (int64_t i : {0, 1}) {
      const int64_t timed = (i + pair) & 1;  // the two kinds take turns in running first
      const Clock::time_point start = Clock::now();
      WEFT_RETURN_IF_ERROR(runners[timed]->Run(feeds()).status());
      seconds[timed] = SecondsSince(start);
    }
    if (pair >= 0) ratios.push_back(seconds[1] / seconds[0]);
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

absl::StatusOr<std::vector<TileSample>> TimedStep::MeasureSamples(int64_t runs) const {
  WEFT_ASSIGN_OR_RETURN(const RunTimes times, MeasureOnOneWorker(*graph_, feeds(), parameters_.get(), runs));
  return Samples(*graph_, CallSeconds(*graph_, times.tiles()));
}

absl::StatusOr<std::vector<TileSample>> MeasureCalibrationSamples(int64_t runs) {
  std::vector<TileSample> samples;
  for (const DType precision : {kF32, kBF16}) {
    for (const std::string& name : CalibrationGraphNames()) {
      WEFT_ASSIGN_OR_RETURN(const TimedStep step, TimedStep::Create({.graph = {name, precision}, .threads = 1}));
      WEFT_ASSIGN_OR_RETURN(std::vector<TileSample> more, step.MeasureSamples(runs));
      std::move(more.begin(), more.end(), std::back_inserter(samples));
    }
  }
  return samples;
}

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

constexpr size_t kMaxTasks = 100'000'000;
constexpr double kMaxSeconds = 1e6, kMaxBytes = 1e15;  // of one task
constexpr uint16_t kMaxParts = std::numeric_limits<uint16_t>::max();
constexpr size_t kMaxShown = 60;  // bytes of a wrong value that an error shows

std::string Shown(const nlohmann::json& value) { return Shortened(JsonLine(value), kMaxShown, "..."); }

// Returns the first key of `object` that is not in `known`, or "" if there is none.
std::string UnknownKey(const nlohmann::json& object, std::initializer_list<const char*> known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) return key;
  }
  return "";
}

}  // namespace

double Workload::seconds() const { return absl::c_accumulate(SecondsOf(costs), 0.0); }

double Workload::critical_path() const { return FindCriticalPath(schedule, SecondsOf(costs)).seconds; }

absl::StatusOr<Workload> ParseTasks(const std::string& text, const std::string& from) {
  const auto wrong = [&](const auto&... what) { return InvalidArgument(from, " is not a file of tasks: ", what...); };
  const absl::StatusOr<nlohmann::json> parsed = ParseLargeJsonObject(text);
  if (!parsed.ok()) return wrong(parsed.status().message());
  const nlohmann::json& json = *parsed;
  const nlohmann::json version = json.value("weft_tasks", nlohmann::json());
  if (version != 1) return wrong("\"weft_tasks\" is ", Shown(version), ", not 1");
  if (const std::string key = UnknownKey(json, {"weft_tasks", "tasks", "edges"}); !key.empty()) {
    return wrong("it has an unknown key '", key, "'");
  }
  const auto tasks = json.find("tasks"), edges = json.find("edges");
  if (tasks == json.end() || !tasks->is_array() || tasks->empty())
    return wrong("\"tasks\" is not a list of at least one");
  if (tasks->size() > kMaxTasks) return wrong("it has more than ", kMaxTasks, " tasks");
  if (edges == json.end() || !edges->is_array()) return wrong("\"edges\" is not a list");
  Workload workload;
  ScheduleBuilder builder;
  for (const nlohmann::json& task : *tasks) {
    const size_t i = workload.costs.size();
    if (!task.is_object()) return wrong("task ", i, " is ", Shown(task), ", not an object");
    const TaskCost cost = {.seconds = NumberUpTo(kMaxSeconds, task, "seconds"),
                           .bytes = NumberUpTo(kMaxBytes, task, "bytes", /*absent=*/0),
                           .cached = NumberUpTo(kMaxBytes, task, "cached", /*absent=*/0)};
    if (cost.seconds < 0 || cost.bytes < 0 || cost.cached < 0) {
      return wrong("task ", i, " needs \"seconds\" from 0 to ", kMaxSeconds,
                   ", and \"bytes\" and \"cached\", if given, from 0 to ", kMaxBytes, ", but is ", Shown(task));
    }
    const nlohmann::json parts = task.value("parts", nlohmann::json(1u));
    if (!parts.is_number_unsigned() || parts < 1 || parts > kMaxParts) {
      return wrong("the parts of task ", i, " are ", Shown(parts), ", not a whole number from 1 to ", kMaxParts);
    }
    if (const std::string key = UnknownKey(task, {"name", "seconds", "bytes", "cached", "parts"}); !key.empty()) {
      return wrong("task ", i, " has an unknown key '", key, "'");
    }
    const auto name = task.find("name");
    if (name != task.end() && !name->is_string())
      return wrong("the name of task ", i, " is ", Shown(*name), ", not a text");
    workload.names.push_back(name != task.end() ? name->get<std::string>() : "");
    workload.costs.push_back(cost);
    builder.AddTask(cost.seconds, /*ends_later=*/false, parts.get<uint16_t>());
  }
  for (size_t i = 0; i < edges->size(); ++i) {
    const nlohmann::json& edge = (*edges)[i];
    const bool pair =
        edge.is_array() && edge.size() == 2 && edge[0].is_number_unsigned() && edge[1].is_number_unsigned();
    if (!pair) return wrong("edge ", i, " is ", Shown(edge), ", not a pair of tasks' numbers");
    const uint64_t before = edge[0].get<uint64_t>(), after = edge[1].get<uint64_t>();
    if (before >= after || after >= workload.costs.size()) {
      return wrong("edge ", i, " leads from ", before, " to ", after, ", but must lead to a later one of the ",
                   workload.costs.size(), " tasks");
    }
    builder.AddEdge(static_cast<uint32_t>(before), static_cast<uint32_t>(after));
  }
  workload.measured_schedule = workload.schedule = std::move(builder).Build();
  return workload;
}

std::string PrintTasks(const Workload& workload) {
  const Schedule& schedule = workload.schedule;
  WEFT_CHECK(workload.names.size() == schedule.task_count && workload.costs.size() == schedule.task_count);
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  std::vector<uint32_t> number(schedule.size());  // of each task in the file
  for (const uint32_t task : SerialOrder(schedule)) {
    number[task] = static_cast<uint32_t>(tasks.size());
    const bool join = task >= schedule.task_count;
    const TaskCost cost = join ? TaskCost() : workload.costs[task];
    tasks.push_back({{"name", join ? "join" : workload.names[task]}, {"seconds", cost.seconds}, {"bytes", cost.bytes}});
    if (cost.cached > 0) tasks.back()["cached"] = cost.cached;
    if (schedule.PartsOf(task) > 1) tasks.back()["parts"] = schedule.PartsOf(task);
  }
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t task = 0; task < schedule.size(); ++task) {
    schedule.ForEachSuccessor(task, [&](uint32_t next) { edges.emplace_back(number[task], number[next]); });
  }
  return JsonLine({{"weft_tasks", 1}, {"tasks", std::move(tasks)}, {"edges", edges}}) + "\n";
}

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
