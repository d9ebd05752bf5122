#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/bench/measure.h"
#include "weft/bench/peak.h"
#include "weft/bench/real_graphs.h"
#include "weft/core/cores.h"
#include "weft/core/status.h"
#include "weft/graph/measured.h"

namespace weft {
namespace {

constexpr int kMostWorkers = 4096;
constexpr double kHelps = 1.05;  // times as fast: else more workers don't help

struct SimulateFlags {
  std::string graph = "gpt2", workers = "1,2,4,8,16,32,64,128", policy = "critical-path";
  int64_t runs = 5;
  double bandwidth = 0, cache = 32;
  double tile = 0;  // microseconds
  bool validate = false, json = false;
  GivenFlags given;
};

Hyperparameters Table(SimulateFlags* flags) {
  std::vector<std::string> policies = PolicyNames();
  policies.push_back("all");
  return {{"graph", "whose training step is run and simulated", &flags->graph, {.choices = RealGraphNames()}},
          {"workers", "how many there are, in turn: whole numbers with commas between", &flags->workers},
          {"policy", "which ready task comes next", &flags->policy, {.choices = policies}},
          {"runs", "measured, on one worker", &flags->runs, {.low = 1, .high = 1000}},
          {"tile-us", "microseconds that a tile takes at least; 0: as always", &flags->tile, {.low = 0, .high = 1e9}},
          {"bandwidth",
           "GB/s of the memory, of all workers together; 0: what this machine's cores get, for each as "
           "many workers as it has",
           &flags->bandwidth,
           {.low = 0, .high = 1e6}},
          {"cache", "MB that are not read from memory again", &flags->cache, {.low = 0, .high = 1e6}},
          {"validate", "also run on as many of the workers as there are cores, and compare", &flags->validate},
          {"json", "an object a line in place of a table", &flags->json}};
}

absl::StatusOr<std::vector<int>> WorkerCounts(const std::string& text) {
  std::vector<int> counts;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    int count = 0;
    if (!absl::SimpleAtoi(word, &count) || count < 1 || count > kMostWorkers) {
      return absl::InvalidArgumentError(
          absl::StrCat("--workers: '", word, "' is not a whole number from 1 to ", kMostWorkers));
    }
    counts.push_back(count);
  }
  return counts;
}

struct Measured {
  Graph graph;
  std::vector<TaskCost> costs;
  double seconds = 0;  // of a run on one worker
};

// The median over runs of each task, and of the whole.
absl::StatusOr<Measured> MeasureTasks(const RealGraph& recorded, const Graph& graph, const SimulateFlags& flags,
                                      Parameters* parameters) {
  Runner runner(graph, parameters, {.threads = 1, .timed = true});
  std::vector<std::vector<double>> by_task(graph.compiled().tasks.size());
  std::vector<double> whole;
  for (int64_t run = 0; run <= flags.runs; ++run) {
    const Clock::time_point start = Clock::now();
    WEFT_RETURN_IF_ERROR(runner.Run(recorded.feeds).status());
    if (run == 0) continue;  // which touches memory for the first time
    whole.push_back(SecondsSince(start));
    const std::vector<double> seconds = TaskSeconds(graph, runner.tile_times());
    for (size_t t = 0; t < seconds.size(); ++t) by_task[t].push_back(seconds[t]);
  }
  std::vector<double> seconds;
  for (std::vector<double>& times : by_task) seconds.push_back(Median(std::move(times)));
  return Measured{WithTimes(graph, seconds), TaskCosts(graph, seconds, flags.cache * 1e6), Median(whole)};
}

// Seconds of a run on real workers.
absl::StatusOr<double> RunOn(const RealGraph& recorded, const Graph& graph, const Policy& policy, int workers,
                             int64_t runs, Parameters* parameters) {
  Runner runner(graph, parameters, {.threads = workers, .policy = &policy});
  std::vector<double> seconds;
  for (int64_t run = 0; run <= runs; ++run) {
    const Clock::time_point start = Clock::now();
    WEFT_RETURN_IF_ERROR(runner.Run(recorded.feeds).status());
    if (run > 0) seconds.push_back(SecondsSince(start));
  }
  return Median(std::move(seconds));
}

absl::Status Simulate(SimulateFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  WEFT_ASSIGN_OR_RETURN(std::vector<int> workers, WorkerCounts(flags.workers));
  const std::unique_ptr<RealGraph> recorded = RecordRealGraph(flags.graph);
  WEFT_RETURN_IF_ERROR(recorded->tape.status());
  if (flags.tile > 0) recorded->options.tile_seconds = flags.tile * 1e-6;
  WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(recorded->tape, recorded->options));
  Parameters parameters({.seed = 1});
  WEFT_ASSIGN_OR_RETURN(const Measured measured, MeasureTasks(*recorded, graph, flags, &parameters));

  Team one(1), all(Cores());
  constexpr size_t kBeyondCaches = size_t{256} << 20;  // bytes
  const double of_one = PeakBandwidth(&one, kBeyondCaches, 0.2).copy;
  const double of_core = PeakBandwidth(&all, kBeyondCaches, 0.2).copy / Cores();
  const double critical_path = FindCriticalPath(graph.compiled().schedule, measured.costs).seconds;
  if (!flags.json) {
    std::printf("%s: %zu tasks, %.2f ms of work on one worker, %.2f ms on the critical path\n\n", flags.graph.c_str(),
                graph.compiled().tasks.size(), measured.seconds * 1e3, critical_path * 1e3);
    std::printf("%-22s %7s %12s %8s %11s %11s %7s\n", "policy", "workers", "makespan_ms", "speedup", "utilization",
                "measured_ms", "off");
  }
  for (const Policy* policy : Policies()) {
    if (flags.policy != "all" && flags.policy != policy->name) continue;
    const Graph& scheduled = policy->measured ? measured.graph : graph;
    int enough = 0;
    double before = 0;  // the makespan of fewer workers
    for (int count : workers) {
      const double bandwidth = flags.bandwidth > 0 ? flags.bandwidth * 1e9 : of_core * count;
      const SimulatedMachine machine = {
          .workers = count, .worker_bandwidth = of_one, .bandwidth = std::max(bandwidth, of_one)};
      const Simulation run = Simulate(scheduled.compiled().schedule, measured.costs, *policy, machine);
      if (before > 0 && enough == 0 && before / run.makespan < kHelps) enough = count;
      before = run.makespan;
      nlohmann::ordered_json row = {{"graph", flags.graph},
                                    {"policy", policy->name},
                                    {"workers", count},
                                    {"makespan_ms", run.makespan * 1e3},
                                    {"speedup", measured.seconds / run.makespan},
                                    {"utilization", run.utilization},
                                    {"critical_path_ms", critical_path * 1e3},
                                    {"measured_ms", nullptr}};
      if (flags.validate && count <= Cores()) {
        WEFT_ASSIGN_OR_RETURN(const double seconds,
                              RunOn(*recorded, scheduled, *policy, count, flags.runs, &parameters));
        row["measured_ms"] = seconds * 1e3;
      }
      if (flags.json) {
        std::printf("%s\n", row.dump().c_str());
        continue;
      }
      std::printf("%-22s %7d %12.2f %8.2f %11.3f", policy->name, count, run.makespan * 1e3,
                  measured.seconds / run.makespan, run.utilization);
      if (row["measured_ms"].is_number()) {
        const double ms = row["measured_ms"];
        std::printf(" %11.2f %+6.1f%%", ms, (run.makespan * 1e3 / ms - 1) * 100);
      }
      std::printf("\n");
    }
    if (!flags.json && enough > 0) std::printf("%-22s %d workers are less than 5%% faster than fewer\n", "", enough);
  }
  return absl::OkStatus();
}

}  // namespace

Command SimulateCommand(CLI::App* weft) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App* app = weft->add_subcommand("simulate", "Says what a training step would take on more workers.");
  AddFlags(app, Table(flags.get()), &flags->given);
  return {"weft simulate", app, [flags] { return Simulate(*flags); }};
}

}  // namespace weft
