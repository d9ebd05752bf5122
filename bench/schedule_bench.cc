// Measures the cost of scheduling: runs synthetic graphs and training steps under Weft's policies and, as baselines,
// under TBB's flow graph and OpenMP tasks.
//
//   bazel run -c opt //bench:schedule_bench -- --nodes=2000 --repeats=3
//   bazel run -c opt //bench:schedule_bench -- --nodes=10000 --work=0
//   bazel run -c opt //bench:schedule_bench -- --nodes=100,10000 --work=0,1,10 --threads=1,2 --csv
//   bazel run -c opt //bench:schedule_bench -- --graphs=wavefront --work=10 --policy=critical-path --json
//   bazel run -c opt //bench:schedule_bench -- --graphs=towers --repeats=5
//   bazel run -c opt //bench:schedule_bench -- --metg --graphs=trivial,stencil,fft --nodes=4096 --repeats=5
//
// For each graph, the policies take --repeats turns, in a new random order each time (bench/turns.h). Training runs one
// graph over and over, so a turn begins with untimed executions: one of a training step, or 2 ms of a synthetic graph.
// A synthetic graph whose nodes together take longer than a second has none. Then one execution is timed, or many of a
// small synthetic graph (bench/schedule/policy_timer.h). Medians are reported. Policy serial always takes turns:
// speedups are relative to it, and lower bounds follow from its turn with the least work.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "oneapi/tbb/global_control.h"
#include "weft/base/status.h"
#include "weft/bench/command_line.h"
#include "weft/bench/schedule/baselines.h"
#include "weft/bench/schedule/metg.h"
#include "weft/bench/schedule/node_work.h"
#include "weft/bench/schedule/policy_timer.h"
#include "weft/bench/schedule/schedule_row.h"
#include "weft/bench/schedule/task_graphs.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/measured.h"
#include "weft/lab/real_graphs.h"
#include "weft/lab/simulate.h"
#include "weft/lab/timed_step.h"

namespace weft {
namespace {

// Returns our policies, then the baselines.
std::vector<const Policy*> AllPolicies() {
  std::vector<const Policy*> policies(Policies().begin(), Policies().end());
  policies.insert(policies.end(), {&kFlowGraph, &kOpenMp});
  return policies;
}

// Above this number of nodes, --policy=all excludes the baselines: a flow graph of a million nodes takes a gigabyte.
constexpr uint32_t kMaxBaselineNodes = 200'000;

struct Options {
  std::vector<std::string> graphs = {"synthetic"}, policies = {"all"};
  std::vector<int64_t> nodes = {10'000}, threads = {2};
  std::vector<double> work = {10};  // microseconds
  int repeats = 20;
  bool probe = false;
  bool metg = false;
  RowFormat format = RowFormat::kTable;
};

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Reports whether the options ask for rows of this policy. Baselines of large graphs must be asked for by name.
bool Wanted(const Options& options, const Policy& policy, uint32_t nodes) {
  if (Has(options.policies, policy.name)) return true;
  return Has(options.policies, "all") && (policy.queue != nullptr || nodes <= kMaxBaselineNodes);
}

// Makes the timers that take turns: of policy serial, and of the wanted policies on `threads` threads.
using MakeTimer = std::function<std::unique_ptr<PolicyTimer>(const Policy* policy, int threads)>;
PolicyTimers MakeTimers(const Options& options, uint32_t nodes, int threads, const MakeTimer& make) {
  PolicyTimers timers;
  for (const Policy* policy : AllPolicies()) {
    const bool serial = policy == &kSerial;
    if (serial || Wanted(options, *policy, nodes)) timers.push_back(make(policy, serial ? 1 : threads));
  }
  return timers;
}

// Prints the rows. Returns whether every execution ran every node.
bool PrintRows(const Options& options, bool with_serial, const std::vector<ScheduleRow>& rows) {
  bool right = true;
  for (const ScheduleRow& row : rows) {
    if (row.policy == kSerial.name && !with_serial) continue;
    std::fputs(Print(row, options.format).c_str(), stdout);
    if (row.executed == row.nodes) continue;
    std::fprintf(stderr, "schedule_bench: %s under %s: an execution ran %g nodes of %u\n", row.graph.c_str(),
                 row.policy.c_str(), row.executed, row.nodes);
    right = false;
  }
  std::fflush(stdout);
  return right;
}

// A synthetic graph, ready to be run.
struct Built {
  Schedule schedule;
  double path_nodes = 0;  // number of nodes on the longest path
  double seconds = 0;     // time to build the schedule
};

Built Build(const std::string& name, uint32_t nodes, int times) {
  const TaskGraph graph = MakeTaskGraph(name, nodes);
  Built built;
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    const Clock::time_point start = Clock::now();
    ScheduleBuilder builder;
    for (uint32_t t = 0; t < graph.nodes; ++t) builder.AddTask(1e-6);
    for (const auto& [before, after] : graph.edges) builder.AddEdge(before, after);
    built.schedule = std::move(builder).Build();
    seconds.push_back(SecondsSince(start));
  }
  built.path_nodes = FindCriticalPath(built.schedule, std::vector<double>(graph.nodes, 1)).seconds;
  built.seconds = Median(seconds);
  return built;
}

// Measures a synthetic graph whose nodes take `work` under each policy.
absl::StatusOr<std::vector<ScheduleRow>> MeasureWork(const std::string& name, const Built& built, const NodeWork& work,
                                                     int threads, const Options& options) {
  const uint32_t nodes = built.schedule.task_count;
  const PolicyTimers timers = MakeTimers(options, nodes, threads, [&](const Policy* policy, int of_policy) {
    return std::make_unique<SyntheticTimer>(policy, of_policy, &built.schedule, built.path_nodes, &work);
  });
  Rounds rounds = MakeRounds(options.repeats, options.probe, threads);
  return Measure(timers, &rounds, {.graph = name, .nodes = nodes, .work_us = work.microseconds()});
}

absl::StatusOr<bool> MeasureSynthetic(const std::string& name, uint32_t wanted_nodes,
                                      const std::vector<NodeWork>& works, const Options& options) {
  const Built built = Build(name, wanted_nodes, std::min(5, options.repeats));
  const uint32_t nodes = built.schedule.task_count;
  bool right = true;
  for (const NodeWork& work : works) {
    for (const int64_t threads : options.threads) {
      WEFT_ASSIGN_OR_RETURN(std::vector<ScheduleRow> rows,
                            MeasureWork(name, built, work, static_cast<int>(threads), options));
      for (ScheduleRow& row : rows) {
        if (row.policy == kCriticalPath.name) row.build = built.seconds;
      }
      right &= PrintRows(options, threads == options.threads[0] && Wanted(options, kSerial, nodes), rows);
    }
  }
  return right;
}

// Prints METG(50%) of each policy on a synthetic graph. Nodes become longer until each policy has reached half.
absl::StatusOr<bool> MeasureMetg(const std::string& name, uint32_t wanted_nodes, const Options& options) {
  constexpr double kShortest = 0.025, kLongest = 110;  // microseconds
  const Built built = Build(name, wanted_nodes, /*times=*/1);
  for (const int64_t threads : options.threads) {
    std::vector<EfficiencyCurve> curves;
    bool all = false;
    for (double work = kShortest; work < kLongest && !all; work *= 2) {
      WEFT_ASSIGN_OR_RETURN(const std::vector<ScheduleRow> rows,
                            MeasureWork(name, built, NodeWork(work), static_cast<int>(threads), options));
      curves.resize(rows.size());
      all = true;
      for (size_t i = 0; i < rows.size(); ++i) {
        const ScheduleRow& row = rows[i];
        std::vector<std::pair<double, double>> points = std::move(curves[i].points);
        points.emplace_back(work, *row.busy / (row.threads * row.makespan));
        curves[i] = {row.graph, row.policy, row.nodes, row.threads, std::move(points)};
        all = all && Metg(curves[i]).has_value();
      }
    }
    for (const EfficiencyCurve& curve : curves) {
      if (curve.policy == kSerial.name) continue;
      std::fputs((options.format == RowFormat::kJson ? PrintMetgJson(curve) : PrintMetg(curve)).c_str(), stdout);
    }
    std::fflush(stdout);
  }
  return true;
}

absl::StatusOr<bool> MeasureReal(const std::string& name, const Options& options) {
  WEFT_ASSIGN_OR_RETURN(const TimedStep step, TimedStep::Create({.graph = {name}}));
  WEFT_ASSIGN_OR_RETURN(const Graph measured, WithMeasuredTimes(step.graph(), step.feeds(), step.parameters()));
  const std::vector<FeedPair> feeds(step.feeds().begin(), step.feeds().end());
  const std::vector<Task>& tasks = step.graph().compiled().tasks;
  const auto nodes = static_cast<uint32_t>(
      std::count_if(tasks.begin(), tasks.end(), [](const Task& t) { return t.group != Task::kJoin; }));
  bool right = true;
  for (const int64_t threads : options.threads) {
    const PolicyTimers timers =
        MakeTimers(options, nodes, static_cast<int>(threads), [&](const Policy* policy, int of_policy) {
          return std::make_unique<RealTimer>(policy, of_policy, policy->measured ? measured : step.graph(), feeds,
                                             step.parameters());
        });
    Rounds rounds = MakeRounds(options.repeats, options.probe, static_cast<int>(threads));
    WEFT_ASSIGN_OR_RETURN(std::vector<ScheduleRow> rows, Measure(timers, &rounds, {.graph = name, .nodes = nodes}));
    for (ScheduleRow& row : rows) row.work_us = *row.busy / nodes * 1e6;
    right &= PrintRows(options, threads == options.threads[0] && Wanted(options, kSerial, nodes), rows);
  }
  return right;
}

// Measures every combination of the options. Returns the exit code.
int MeasureAll(const Options& options) {
  const auto hardware = static_cast<int64_t>(std::thread::hardware_concurrency());
  const int64_t threads = std::max(hardware, *std::max_element(options.threads.begin(), options.threads.end()));
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
  if (!options.metg || options.format == RowFormat::kTable) {
    std::fputs((options.metg ? MetgHeader() : Header(options.format)).c_str(), stdout);
  }
  std::vector<NodeWork> works;
  for (const double microseconds : options.work) works.emplace_back(microseconds);
  bool right = true;
  const auto check = [&](const std::string& name, const absl::StatusOr<bool>& result) {
    right &= result.ok() && *result;
    if (result.ok()) return;
    std::fprintf(stderr, "schedule_bench: %s: %s\n", name.c_str(), std::string(result.status().message()).c_str());
  };
  for (const std::string& name : TaskGraphNames()) {
    if (!Has(options.graphs, "synthetic") && !Has(options.graphs, name)) continue;
    for (const int64_t nodes : options.nodes) {
      const auto count = static_cast<uint32_t>(nodes);
      check(name, options.metg ? MeasureMetg(name, count, options) : MeasureSynthetic(name, count, works, options));
    }
  }
  for (const std::string& name : RealGraphNames()) {
    if (Has(options.graphs, "real") || Has(options.graphs, name)) check(name, MeasureReal(name, options));
  }
  return right ? 0 : 1;
}

int Main(int argc, char** argv) {
  std::vector<std::string> graphs = TaskGraphNames(), policies = {"all"};
  for (const Policy* policy : AllPolicies()) policies.push_back(policy->name);
  for (const std::string& name : RealGraphNames()) graphs.push_back(name);
  graphs.insert(graphs.end(), {"synthetic", "real"});

  Options options;
  bool json = false, csv = false;
  CLI::App app("Measures the cost of scheduling graphs of small tasks, for every combination of the listed values.",
               "schedule_bench");
  SetUp(&app);
  AddNames(&app, "--graphs", "synthetic: all synthetic graphs; real: all training steps", &options.graphs, graphs);
  AddWholeNumbers(&app, "--nodes", "number of nodes of a synthetic graph, rounded as its form requires", &options.nodes,
                  1, 100'000'000);
  AddNumbers(&app, "--work", "microseconds that a synthetic graph's node takes; 0: the cost of scheduling alone",
             &options.work, 0, 1e6);
  AddWholeNumbers(&app, "--threads", "number of threads of every policy except serial", &options.threads, 1, 256);
  AddNames(&app, "--policy", "all: all policies, without the baselines if a graph has more than 200,000 nodes",
           &options.policies, policies);
  app.add_option("--repeats", options.repeats, "number of turns of each policy")->check(CLI::Range(1, 100'000));
  AddProbe(&app, &options.probe);
  CLI::Option* const metg = app.add_flag(
      "--metg", options.metg,
      "print METG(50%) of synthetic graphs: the shortest node, in microseconds, with which threads spend half of their "
      "time on nodes; excludes --work and --csv");
  metg->excludes(app.get_option("--work"));
  CLI::Option* as_json = app.add_flag("--json", json, "print one JSON object a line instead of a table");
  app.add_flag("--csv", csv, "print comma-separated values instead of a table")->excludes(as_json)->excludes(metg);
  return RunProgram(&app, argc, argv, [&] {
    if (json) options.format = RowFormat::kJson;
    if (csv) options.format = RowFormat::kCsv;
    for (const std::string& name : RealGraphNames()) {
      if (options.metg && (Has(options.graphs, "real") || Has(options.graphs, name))) {
        throw CLI::ValidationError("--metg", "it is for synthetic graphs, whose nodes have a given duration");
      }
    }
    return MeasureAll(options);
  });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
