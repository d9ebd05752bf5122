// What scheduling costs: synthetic graphs and training steps under our policies, and as baselines under TBB's flow
// graph and OpenMP tasks.
//
//   bazel run -c opt //bench:schedule_bench -- --nodes=10000 --threads=2
//   bazel run -c opt //bench:schedule_bench -- --graphs=wavefront --work=10 --policy=critical-path --json
//   bazel run -c opt //bench:schedule_bench -- --graphs=towers --repeats=5
//
// The policies of a graph take turns, --repeats times. In its turn a policy runs the graph for a few milliseconds
// untimed (a training step once), because training runs one graph over and over; then a run is timed, or many if the
// graph is small. Medians are reported.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "oneapi/tbb/global_control.h"
#include "weft/bench/baselines.h"
#include "weft/bench/command_line.h"
#include "weft/bench/node_work.h"
#include "weft/bench/real_graphs.h"
#include "weft/bench/task_graphs.h"
#include "weft/core/status.h"
#include "weft/lab/measure.h"
#include "weft/lab/measured.h"

namespace weft {
namespace {

// Ours, then those that they are compared with.
std::vector<const Policy*> AllPolicies() {
  std::vector<const Policy*> policies(Policies().begin(), Policies().end());
  policies.insert(policies.end(), {&kFlowGraph, &kOpenMp});
  return policies;
}

// Left out of `all` for more: a flow graph of a million nodes takes a gigabyte.
constexpr uint32_t kMostForBaselines = 200'000;

struct Options {
  std::string graphs = "synthetic", policy = "all";
  uint32_t nodes = 10'000;
  double work = 0;  // microseconds
  int threads = 2, repeats = 20;
  bool json = false;
};

Schedule BuildSchedule(const TaskGraph& graph, double seconds) {
  ScheduleBuilder builder;
  for (uint32_t t = 0; t < graph.nodes; ++t) builder.AddTask(seconds);
  for (const auto& [before, after] : graph.edges) builder.AddEdge(before, after);
  return std::move(builder).Build();
}

struct Row {
  const Policy* policy = nullptr;
  int threads = 1;
  std::unique_ptr<Executor> executor;                  // of a synthetic graph
  std::unique_ptr<Runner> runner;                      // of a real one
  std::vector<double> seconds = {}, utilization = {};  // of a run, by turn
  uint64_t executed = 0;                               // nodes by a run
  bool wrong = false;                                  // some runs executed more or fewer than there are
};

// Takes account of the nodes that so many runs have executed. Returns what they were at work for.
double Account(uint64_t runs, uint32_t nodes, Row* row) {
  const Tally tally = TakeTally();
  const bool wrong = tally.executed != runs * nodes;
  if (wrong || !row->wrong) row->executed = tally.executed / runs;
  if (wrong) {
    std::fprintf(stderr, "schedule_bench: %s: %llu nodes were executed in %llu runs of a graph of %u\n",
                 row->policy->name, static_cast<unsigned long long>(tally.executed),
                 static_cast<unsigned long long>(runs), nodes);
  }
  row->wrong |= wrong;
  return tally.busy_seconds;
}

// The threads of the policy before, above all OpenMP's, look for work for some milliseconds before they sleep.
void LetOthersSleep() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

void TakeTurn(uint32_t nodes, const NodeWork& work, Row* row) {
  LetOthersSleep();
  const auto run = [&] { row->executor->Run([&work](uint32_t, int) { work(); }); };
  uint64_t runs = 0;
  for (const Clock::time_point start = Clock::now(); SecondsSince(start) < 2e-3; ++runs) run();
  Account(runs, nodes, row);

  runs = std::max<uint64_t>(1, std::min<uint64_t>(runs / 2, 10'000 / nodes));
  const Clock::time_point start = Clock::now();
  for (uint64_t i = 0; i < runs; ++i) run();
  const double seconds = SecondsSince(start), busy_seconds = Account(runs, nodes, row);
  row->seconds.push_back(seconds / static_cast<double>(runs));
  row->utilization.push_back(busy_seconds / (row->threads * seconds));
}

// One run untimed, one timed.
absl::Status TakeTurn(const Graph& graph, const std::vector<FeedPair>& feeds, Row* row) {
  LetOthersSleep();
  WEFT_RETURN_IF_ERROR(row->runner->Run(feeds).status());
  const Clock::time_point start = Clock::now();
  WEFT_RETURN_IF_ERROR(row->runner->Run(feeds).status());
  const double seconds = SecondsSince(start);
  double busy_seconds = 0;
  row->executed = 0;
  for (const double task_seconds : TaskSeconds(graph, row->runner->tile_times())) {
    busy_seconds += task_seconds;
    row->executed += task_seconds > 0;
  }
  row->seconds.push_back(seconds);
  row->utilization.push_back(busy_seconds / (row->threads * seconds));
  return absl::OkStatus();
}

void PrintRow(const std::string& graph, uint32_t nodes, const Options& options, const Row& row, double build_seconds) {
  const double seconds = Median(row.seconds), utilization = Median(row.utilization);
  const bool ours = row.policy == &kCriticalPath && build_seconds > 0, timed = options.work > 0 || row.runner;
  if (!options.json) {
    std::printf("%-10s %9u %-22s %7d %10.1f %12.2f", graph.c_str(), nodes, row.policy->name, row.threads,
                seconds / nodes * 1e9, seconds * 1e6);
    timed ? std::printf(" %11.3f", utilization) : std::printf(" %11s", "-");
    if (ours) std::printf(" %9.1f", build_seconds / nodes * 1e9);
    std::printf("\n");
    return;
  }
  nlohmann::ordered_json json = {
      {"graph", graph},
      {"nodes", nodes},
      {"work_us", row.runner ? seconds * row.threads * utilization / nodes * 1e6 : options.work},
      {"threads", row.threads},
      {"policy", row.policy->name},
      {"ns_per_node", seconds / nodes * 1e9},
      {"makespan_us", seconds * 1e6},
      {"utilization", nullptr},
      {"executed", row.executed}};
  if (timed) json["utilization"] = utilization;
  if (ours) json["build_ns_per_node"] = build_seconds / nodes * 1e9;
  std::printf("%s\n", json.dump().c_str());
}

// The rows of a graph, without what runs them; baselines only up to a number of nodes, unless asked for by name.
std::vector<Row> Rows(const Options& options, uint32_t nodes) {
  std::vector<Row> rows;
  for (const Policy* policy : AllPolicies()) {
    const bool baseline = policy->queue == nullptr;
    if (options.policy == "all" ? baseline && nodes > kMostForBaselines : options.policy != policy->name) continue;
    rows.push_back({.policy = policy, .threads = policy == &kSerial ? 1 : options.threads});
  }
  return rows;
}

absl::Status MeasureReal(const std::string& name, const Options& options) {
  const std::unique_ptr<RealGraph> recorded = RecordRealGraph(name);
  WEFT_RETURN_IF_ERROR(recorded->tape.status());
  WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(recorded->tape, recorded->options));
  Parameters parameters({.seed = 1});
  WEFT_ASSIGN_OR_RETURN(const Graph measured, WithMeasuredTimes(graph, recorded->feeds, &parameters));
  const std::vector<Task>& tasks = graph.compiled().tasks;
  const auto nodes = std::count_if(tasks.begin(), tasks.end(), [](const Task& t) { return t.group != Task::kJoin; });
  std::vector<Row> rows = Rows(options, static_cast<uint32_t>(nodes));
  for (Row& row : rows) {
    row.runner = std::make_unique<Runner>(row.policy->measured ? measured : graph, &parameters,
                                          RunnerOptions{.threads = row.threads, .policy = row.policy, .timed = true});
  }
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (Row& row : rows) WEFT_RETURN_IF_ERROR(TakeTurn(graph, recorded->feeds, &row));
  }
  for (const Row& row : rows) PrintRow(name, static_cast<uint32_t>(nodes), options, row, 0);
  std::fflush(stdout);
  return absl::OkStatus();
}

// Whether every run executed every node.
bool Measure(const std::string& name, const Options& options, NodeWork work) {
  const TaskGraph graph = MakeTaskGraph(name, options.nodes);
  Schedule schedule;
  std::vector<double> build_seconds;
  for (int i = 0; i < std::min(5, options.repeats); ++i) {
    const Clock::time_point start = Clock::now();
    schedule = BuildSchedule(graph, std::max(options.work, 1e-3) * 1e-6);
    build_seconds.push_back(SecondsSince(start));
  }
  std::vector<Row> rows = Rows(options, graph.nodes);
  for (Row& row : rows) row.executor = MakeExecutor(*row.policy, &schedule, row.threads);
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (Row& row : rows) TakeTurn(graph.nodes, work, &row);
  }
  for (const Row& row : rows) PrintRow(name, graph.nodes, options, row, Median(build_seconds));
  std::fflush(stdout);
  return std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong; });
}

int Main(int argc, char** argv) {
  std::vector<std::string> graphs = TaskGraphNames(), policies = {"all"};
  for (const Policy* policy : AllPolicies()) policies.push_back(policy->name);
  const std::vector<std::string> synthetic = graphs, real = RealGraphNames();
  graphs.insert(graphs.end(), real.begin(), real.end());
  graphs.insert(graphs.end(), {"synthetic", "real"});

  Options options;
  CLI::App app("Measures what it costs to schedule graphs of small tasks.", "schedule_bench");
  SetUp(&app);
  app.add_option("--graphs", options.graphs, "one graph, or all that are made up, or all training steps")
      ->check(CLI::IsMember(graphs));
  app.add_option("--nodes", options.nodes, "of a graph, or as near as its form allows")
      ->check(CLI::Range(1, 100'000'000));
  app.add_option("--work", options.work, "microseconds that each node keeps its thread busy")
      ->check(CLI::Range(0., 1e6));
  app.add_option("--threads", options.threads, "of every policy but serial")->check(CLI::Range(1, 256));
  app.add_option("--policy", options.policy, "one policy, or all")->check(CLI::IsMember(policies));
  app.add_option("--repeats", options.repeats, "turns that each policy takes")->check(CLI::Range(1, 100'000));
  app.add_flag("--json", options.json, "an object a line in place of a table");
  return RunProgram(&app, argc, argv, [&] {
    if (!(options.work >= 0)) throw CLI::ValidationError("--work", "not a number");
    const size_t threads = std::max<size_t>(static_cast<size_t>(options.threads), std::thread::hardware_concurrency());
    const tbb::global_control control(tbb::global_control::max_allowed_parallelism, threads);
    if (!options.json) {
      std::printf("%-10s %9s %-22s %7s %10s %12s %11s %9s\n", "graph", "nodes", "policy", "threads", "ns/node",
                  "makespan_us", "utilization", "build_ns");
    }
    const NodeWork work(options.work);
    bool right = true;
    for (const std::string& name : synthetic) {
      if (options.graphs == "synthetic" || options.graphs == name) right &= Measure(name, options, work);
    }
    for (const std::string& name : real) {
      if (options.graphs != "real" && options.graphs != name) continue;
      const absl::Status status = MeasureReal(name, options);
      if (status.ok()) continue;
      std::fprintf(stderr, "schedule_bench: %s: %s\n", name.c_str(), std::string(status.message()).c_str());
      right = false;
    }
    return right ? 0 : 1;
  });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
