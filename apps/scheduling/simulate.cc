#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/apps/commands.h"
#include "weft/apps/scheduling/timed_step.h"
#include "weft/core/cores.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/graph/compile.h"
#include "weft/lab/measure.h"
#include "weft/lab/measured.h"
#include "weft/lab/peak.h"
#include "weft/lab/task_file.h"

namespace weft {
namespace {

constexpr int kMaxWorkers = 4096;
constexpr double kHelps = 1.05;  // times as fast: else more workers don't help

struct SimulateFlags {
  std::string graph = "gpt2", tasks, save, workers = "1,2,4,8,16,32,64,128", policy = "critical-path";
  int64_t runs = 5;
  double bandwidth = 0, cache = kCacheBytes * 1e-6;  // GB/s, MB
  double tile = 0;                                   // microseconds
  bool no_reuse = false, validate = false, json = false, overwrite = false;
  GivenFlags given;
};

Hyperparameters Table(SimulateFlags* flags) {
  std::vector<std::string> policies = PolicyNames();
  policies.push_back("all");
  return {
      {"graph", "whose training step is run and simulated", &flags->graph, {.choices = RealGraphNames()}},
      {"tasks", "a file of tasks that is simulated instead (docs/scheduling.md)", &flags->tasks, {.is_path = true}},
      {"save-tasks", "write what was measured as such a file", &flags->save, {.is_path = true}},
      {"overwrite", "with --save-tasks: in place of a file that is there", &flags->overwrite},
      {"workers", "how many there are: whole numbers with commas between", &flags->workers},
      {"policy", "which ready task comes next", &flags->policy, {.choices = policies}},
      {"runs", "measured, on one worker", &flags->runs, {.low = 1, .high = 1000}},
      {"tile-us", "microseconds that a tile takes at least; 0: as always", &flags->tile, {.low = 0, .high = 1e9}},
      {"no-reuse", "without the edges that let values share bytes", &flags->no_reuse},
      {"bandwidth",
       "GB/s of the memory, of all workers together, and the most that one gets; 0: what this machine's cores get, for "
       "each as many workers as it has",
       &flags->bandwidth,
       {.low = 0, .high = 1e6}},
      {"cache", "MB that are not read from memory again", &flags->cache, {.low = 0, .high = 1e6}},
      {"validate", "also run on as many of the workers as there are cores, in turns, and compare", &flags->validate},
      {"json", "an object a line in place of a table", &flags->json}};
}

absl::StatusOr<std::vector<int>> WorkerCounts(const std::string& text) {
  std::vector<int> counts;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    int count = 0;
    if (!absl::SimpleAtoi(word, &count) || count < 1 || count > kMaxWorkers) {
      return absl::InvalidArgumentError(
          absl::StrCat("--workers: '", word, "' is not a whole number from 1 to ", kMaxWorkers));
    }
    counts.push_back(count);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

absl::Status CheckFlags(const SimulateFlags& flags, const std::vector<int>& workers) {
  if (!flags.tasks.empty()) {
    for (const char* other : {"graph", "save-tasks", "runs", "tile-us", "no-reuse", "cache", "validate"}) {
      if (flags.given.count(other) == 0) continue;
      return absl::InvalidArgumentError(absl::StrCat("--", other, " is of a training step, not of --tasks"));
    }
  }
  if (flags.validate && flags.no_reuse) {
    return absl::InvalidArgumentError("--no-reuse can't be run: values would overwrite each other");
  }
  if (flags.overwrite && flags.save.empty()) {
    return absl::InvalidArgumentError("--overwrite is for --save-tasks, which was not given");
  }
  if (flags.validate && workers.front() > Cores()) {
    return absl::InvalidArgumentError(absl::StrCat("--validate runs on up to ", Cores(),
                                                   " workers, as there are cores, but --workers begins at ",
                                                   workers.front()));
  }
  return flags.save.empty() ? absl::OkStatus() : CheckOut("save-tasks", flags.save, flags.overwrite);
}

// What is simulated.
struct Subject {
  std::string name;
  Schedule schedule, by_measured_times;
  std::vector<TaskCost> costs;
  double seconds = 0;  // of all tasks
};

// A policy on a number of workers: simulated and, to validate that, run.
struct Row {
  const Policy* policy = nullptr;
  int workers = 1;
  std::vector<double> seconds = {};  // of its runs
};

std::vector<Row> Rows(const std::string& policy, const std::vector<int>& workers) {
  std::vector<Row> rows;
  for (const Policy* each : Policies()) {
    if (policy != "all" && policy != each->name) continue;
    for (int count : workers) rows.push_back({.policy = each, .workers = count});
  }
  return rows;
}

// Seconds of a run, after one that touches memory for the first time; its tiles' times are added to `times` unless
// null.
absl::StatusOr<double> TimedRun(const Graph& graph, const RealGraph& recorded, Parameters* parameters,
                                RunnerOptions options, RunTimes* times) {
  options.timed = times != nullptr;
  Runner runner(graph, parameters, options);
  WEFT_RETURN_IF_ERROR(runner.Run(recorded.feeds).status());
  const Clock::time_point start = Clock::now();
  WEFT_RETURN_IF_ERROR(runner.Run(recorded.feeds).status());
  const double seconds = SecondsSince(start);
  if (times != nullptr) times->Add(seconds, runner.tile_times());
  return seconds;
}

std::vector<std::string> TaskNames(const Graph& graph) {
  const CompiledGraph& compiled = graph.compiled();
  std::vector<std::string> names;
  for (const Task& task : compiled.tasks) {
    std::string& name = names.emplace_back(task.group == Task::kJoin ? "join" : "");
    if (task.group == Task::kJoin) continue;
    const Group& group = compiled.groups[task.group];
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) {
      absl::StrAppend(&name, s == group.first_call ? "" : " + ",
                      compiled.program.node(compiled.calls[s].node).op->name);
    }
    absl::StrAppend(&name, " @ ", compiled.program.scope(compiled.program.node(compiled.calls[group.first_call].node)));
  }
  return names;
}

// Runs on one worker and those of `rows` that are to be validated take turns, so that all meet the same machine.
absl::StatusOr<Subject> Measure(const SimulateFlags& flags, std::vector<Row>* rows) {
  const std::unique_ptr<RealGraph> recorded = RecordRealGraph(flags.graph);
  WEFT_RETURN_IF_ERROR(recorded->tape.status());
  if (flags.tile > 0) recorded->options.tile_seconds = flags.tile * 1e-6;
  WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(recorded->tape, recorded->options));
  Parameters parameters({.seed = 1});
  WEFT_ASSIGN_OR_RETURN(const Graph measured, WithMeasuredTimes(graph, recorded->feeds, &parameters));
  RunTimes times;
  while (times.runs() < flags.runs) {
    WEFT_RETURN_IF_ERROR(TimedRun(graph, *recorded, &parameters, {.threads = 1}, &times).status());
    for (Row& row : *rows) {
      if (!flags.validate || row.workers > Cores()) continue;
      WEFT_ASSIGN_OR_RETURN(const double seconds,
                            TimedRun(row.policy->measured ? measured : graph, *recorded, &parameters,
                                     {.threads = row.workers, .policy = row.policy}, nullptr));
      row.seconds.push_back(seconds);
    }
  }
  if (flags.no_reuse) graph = WithoutReuse(graph);
  const std::vector<double> seconds = TaskSeconds(graph, times.tiles());
  Subject subject = {.name = flags.graph,
                     .schedule = graph.compiled().schedule,
                     .by_measured_times = WithTimes(graph, seconds).compiled().schedule,
                     .costs = TaskCosts(graph, seconds, flags.cache * 1e6),
                     .seconds = std::accumulate(seconds.begin(), seconds.end(), 0.0)};
  if (!flags.save.empty()) {
    const std::string text = PrintTasks(ListTasks(subject.schedule, TaskNames(graph), subject.costs));
    WEFT_RETURN_IF_ERROR(WriteOut(flags.save, flags.overwrite, text));
  }
  return subject;
}

absl::StatusOr<Subject> Load(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return UsageError(text.status());
  WEFT_ASSIGN_OR_RETURN(const TaskList tasks, ParseTasks(*text, path));
  const Schedule schedule = tasks.schedule();
  double seconds = 0;
  for (const TaskCost& cost : tasks.costs) seconds += cost.seconds;
  return Subject{
      .name = path, .schedule = schedule, .by_measured_times = schedule, .costs = tasks.costs, .seconds = seconds};
}

struct CopyBandwidth {  // bytes a second
  double of_one = 0, of_each = 0;
};
CopyBandwidth MeasureBandwidth() {
  constexpr size_t kBeyondCaches = size_t{256} << 20;  // bytes
  Team one(1), all(Cores());
  return {.of_one = PeakBandwidth(&one, kBeyondCaches, 0.2).copy,
          .of_each = PeakBandwidth(&all, kBeyondCaches, 0.2).copy / Cores()};
}

void Print(const SimulateFlags& flags, const Subject& subject, double critical_path, const Simulation& run,
           const Row& row) {
  const double measured = row.seconds.empty() ? 0 : Median(row.seconds);
  if (flags.json) {
    nlohmann::ordered_json json = {{"graph", subject.name},
                                   {"policy", row.policy->name},
                                   {"workers", row.workers},
                                   {"makespan_ms", run.makespan * 1e3},
                                   {"speedup", subject.seconds / run.makespan},
                                   {"utilization", run.utilization},
                                   {"critical_path_ms", critical_path * 1e3},
                                   {"measured_ms", nullptr}};
    if (measured > 0) json["measured_ms"] = measured * 1e3;
    std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%-22s %7d %12.2f %8.2f %11.3f", row.policy->name, row.workers, run.makespan * 1e3,
              subject.seconds / run.makespan, run.utilization);
  measured > 0 ? std::printf(" %11.2f %+6.1f%%\n", measured * 1e3, 100 * (run.makespan / measured - 1))
               : std::printf(" %11s %7s\n", "-", "-");
}

absl::Status Simulate(SimulateFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int> workers, WorkerCounts(flags.workers));
  WEFT_RETURN_IF_ERROR(CheckFlags(flags, workers));
  std::vector<Row> rows = Rows(flags.policy, workers);
  WEFT_ASSIGN_OR_RETURN(const Subject subject, flags.tasks.empty() ? Measure(flags, &rows) : Load(flags.tasks));
  const CopyBandwidth bandwidth = flags.bandwidth > 0 ? CopyBandwidth{flags.bandwidth * 1e9} : MeasureBandwidth();
  const double critical_path = FindCriticalPath(subject.schedule, subject.costs).seconds;
  if (!flags.json) {
    std::printf("%s: %zu tasks, %.2f ms of work on one worker, %.2f ms on the critical path\n\n", subject.name.c_str(),
                subject.costs.size(), subject.seconds * 1e3, critical_path * 1e3);
    std::printf("%-22s %7s %12s %8s %11s %11s %7s\n", "policy", "workers", "makespan_ms", "speedup", "utilization",
                "measured_ms", "off");
  }
  double before = 0;  // the makespan of fewer workers
  bool enough = false;
  for (const Row& row : rows) {
    if (&row == rows.data() || (&row - 1)->policy != row.policy) before = 0, enough = false;
    const double shared = flags.bandwidth > 0 ? flags.bandwidth * 1e9 : bandwidth.of_each * row.workers;
    const SimulatedMachine machine = {
        .workers = row.workers, .worker_bandwidth = bandwidth.of_one, .bandwidth = std::max(shared, bandwidth.of_one)};
    const Simulation run = Simulate(row.policy->measured ? subject.by_measured_times : subject.schedule, subject.costs,
                                    *row.policy, machine);
    Print(flags, subject, critical_path, run, row);
    if (!flags.json && !enough && before > 0 && before / run.makespan < kHelps) {
      std::printf("  %d workers are less than %.0f%% faster than fewer\n", row.workers, (kHelps - 1) * 100);
      enough = true;
    }
    before = run.makespan;
  }
  return absl::OkStatus();
}

}  // namespace

Command SimulateCommand(CLI::App* weft) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App* app = AddCommand(weft, "simulate", "Says what a training step would take on more workers.");
  AddFlags(app, Table(flags.get()), &flags->given);
  return {"weft simulate", app, [flags] { return Simulate(*flags); }};
}

}  // namespace weft
