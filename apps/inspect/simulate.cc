// `weft simulate` predicts how long a training step takes on other numbers of workers or ranks.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/apps/streams.h"
#include "weft/base/cores.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/distributed/all_reduce.h"
#include "weft/graph/compile/speedup.h"
#include "weft/lab/calibration.h"
#include "weft/lab/machine/sharing.h"
#include "weft/lab/network.h"
#include "weft/lab/ranks/rank_step.h"
#include "weft/lab/timed_step.h"
#include "weft/train/step/step_options.h"

namespace weft {
namespace {

constexpr int kMaxWorkers = 4096, kMaxRanks = 4096;

// The flags for predictions with --ranks.
struct RankFlags {
  std::string ranks, network;
  Sharding sharding = Sharding::kNone;
  int64_t micro_batches_per_rank = 1, micro_batches = 0, ranks_per_machine = 1;
  uint64_t bucket = kBucketBytes;
};

struct SimulateFlags {
  ChoiceFlags choice;
  std::string tasks, save, costs, workers = "1,2,4,8,16,32,64,128", policy = "critical-path";
  int64_t runs = 5;
  double bandwidth = 0, cache = kCacheBytes * 1e-6;  // GB/s, MB
  double tile = 0;                                   // microseconds
  bool no_reuse = false, validate = false, json = false, overwrite = false;
  RankFlags ranks;
  GivenFlags given;
};

Hyperparameters RankTable(RankFlags* flags) {
  return {
      {"ranks",
       "predict a step on these numbers of ranks, separated by commas, in place of workers",
       &flags->ranks,
       {.type = "N,N,..."}},
      {"network",
       "latency and bandwidth between ranks, and a topology: flat, or tree:RANKS:FACTOR for switches of RANKS ranks "
       "with uplinks of 1/FACTOR of their bandwidth; default: 25us,10Gbit,flat, or the network in the file of --costs",
       &flags->network,
       {.type = "LATENCY,BANDWIDTH[,TOPOLOGY]"}},
      {"micro-batches-per-rank",
       "micro-batches of each rank in a step, for any number of ranks",
       &flags->micro_batches_per_rank,
       {.low = 1, .high = 1e6}},
      {"micro-batches",
       "micro-batches of a step on all ranks together; 0: --micro-batches-per-rank on each",
       &flags->micro_batches,
       {.low = 0, .high = 1e6}},
      {"ranks-per-machine",
       "number of ranks on each machine. While the command measures costs, it starts this many ranks on this machine; "
       "with --validate, it starts all ranks here",
       &flags->ranks_per_machine,
       {.low = 1, .high = 1024}},
      ChoiceRow<Sharding>("shard", "state that the ranks divide among themselves", kShardingNames, &flags->sharding),
      {"bucket", "bytes of gradients that travel together, such as 1M", &flags->bucket, {.is_bytes = true}},
  };
}

Hyperparameters Table(SimulateFlags* flags) {
  std::vector<std::string> policies = PolicyNames();
  policies.push_back("all");
  Hyperparameters table = ChoiceTable(&flags->choice);
  Append(
      {{"tasks", "a file of tasks to simulate instead (docs/scheduling.md)", &flags->tasks, {.is_path = true}},
       {"save-tasks", "write the measured tasks to this file", &flags->save, {.is_path = true}},
       {"overwrite", "replace the file of --save-tasks if it exists", &flags->overwrite, {.needs = "save-tasks"}},
       {"workers",
        "numbers of workers, separated by commas; with --ranks: one number, of the workers of each rank",
        &flags->workers,
        {.type = "N,N,..."}},
       {"costs",
        "a file of `weft calibrate` that says how much workers slow each other down and, with --ranks, what ops and "
        "messages cost; default: the memory's bandwidth and the costs of ops are measured",
        &flags->costs,
        {.is_path = true}},
       {"policy", "which ready task runs next; all: compare the policies", &flags->policy, {.choices = policies}},
       {"runs", "number of measured runs on one worker", &flags->runs, {.low = 1, .high = 1000}},
       {"tile-us",
        "minimum duration of a tile, a part of a node that runs on one worker, in microseconds; 0: the compiler's "
        "default",
        &flags->tile,
        {.low = 0, .high = 1e9}},
       {"no-reuse",
        "simulate a plan in which each value has its own memory: more tasks can run at once, but it needs more bytes",
        &flags->no_reuse},
       {"bandwidth",
        "memory bandwidth in GB/s, the limit of one worker and of all together; 0: that of --costs or of this machine, "
        "scaled to the number of workers",
        &flags->bandwidth,
        {.low = 0, .high = 1e6}},
       {"cache",
        "cache size in MB: values that fit in it are not read from memory again",
        &flags->cache,
        {.low = 0, .high = 1e6}},
       {"validate",
        "compare with real runs on the numbers of workers, or with --ranks of ranks, that this machine has cores for",
        &flags->validate},
       {"json", "print one JSON object a line instead of a table", &flags->json}},
      &table);
  Append(RankTable(&flags->ranks), &table);
  return table;
}

// Returns what workers lose by sharing a machine, as `calibration` says. If there is none, or one for ranks without
// these figures, they share the memory's bandwidth alone. --bandwidth sets the bandwidth in either case.
absl::StatusOr<std::vector<SharingRow>> SharingBy(const SimulateFlags& flags,
                                                  const std::optional<Calibration>& calibration) {
  std::vector<SharingRow> rows = calibration ? calibration->sharing() : std::vector<SharingRow>();
  if (rows.empty() && calibration && flags.ranks.ranks.empty()) {
    return InvalidArgument(
        flags.costs,
        " does not say how much threads slow each other down: weft calibrate --threads=1,2,... --out=", flags.costs,
        " adds it");
  }
  const double bandwidth = flags.bandwidth * 1e9;
  if (rows.empty() && bandwidth > 0) rows = {{.threads = 1}, {.threads = kMaxWorkers}};
  if (rows.empty()) rows = MeasureMemory(Cores() > 1 ? std::vector<int>{1, Cores()} : std::vector<int>{1});
  for (SharingRow& row : rows) row.bytes = bandwidth > 0 ? bandwidth : row.bytes;
  return rows;
}

absl::Status CheckFlags(const SimulateFlags& flags, const std::vector<int>& workers) {
  RankFlags unused;
  for (const Hyperparameter& row : RankTable(&unused)) {
    WEFT_RETURN_IF_ERROR(CheckNotGiven(flags.given, {row.flag.c_str()}, " is for predictions with --ranks"));
  }
  if (!flags.tasks.empty()) {
    WEFT_RETURN_IF_ERROR(CheckNotGiven(
        flags.given,
        {"graph", "batch", "step", "precision", "save-tasks", "runs", "tile-us", "no-reuse", "cache", "validate"},
        " is of a training step, not of --tasks"));
    if (!flags.choice.run.empty()) return InvalidArgument(flags.choice.run, " is a training step beside --tasks");
  }
  if (flags.validate && flags.no_reuse) {
    return InvalidArgument("--no-reuse can't be run: values would overwrite each other");
  }
  if (flags.validate && workers.front() > Cores()) {
    return InvalidArgument("--validate runs on up to ", Cores(),
                           " workers, as there are cores, but --workers begins at ", workers.front());
  }
  return flags.save.empty() ? absl::OkStatus() : CheckOut("save-tasks", flags.save, flags.overwrite);
}

// `measures`: whether costs of ops are measured.
absl::Status CheckRankFlags(const SimulateFlags& all, bool measures, const std::vector<int>& workers) {
  const RankFlags& flags = all.ranks;
  WEFT_RETURN_IF_ERROR(CheckNotGiven(all.given, {"tasks", "save-tasks", "overwrite", "policy", "tile-us"},
                                     " is not for predictions with --ranks"));
  if (workers.size() > 1) return InvalidArgument("--workers: with --ranks, one number of workers is for each rank");
  WEFT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ParseCounts("ranks", flags.ranks, kMaxRanks));
  if (!flags.network.empty()) {
    WEFT_ASSIGN_OR_RETURN(const Network network, Annotate(ParseNetwork(flags.network), "--network"));
    if (all.validate && network.ranks_per_switch > 0) {
      return InvalidArgument("--validate imitates a flat network, but --network=", flags.network, " is a tree");
    }
  }
  if (flags.micro_batches > 0 && flags.micro_batches < ranks.back()) {
    return InvalidArgument("--micro-batches=", flags.micro_batches, ": ", ranks.back(),
                           " ranks need at least one each");
  }
  if (flags.ranks_per_machine > Cores() && measures) {
    return InvalidArgument("--ranks-per-machine=", flags.ranks_per_machine, ": this machine has ", Cores(),
                           " cores, and each rank needs one while costs are measured");
  }
  if (flags.sharding == Sharding::kWeights) {
    return InvalidArgument(
        "--shard=weights: the times of gathered weights can't be predicted yet; the table of memory ",
        "has this kind with any other --shard");
  }
  if (all.validate && workers[0] != 1) {
    return InvalidArgument("--validate runs each rank on one thread: it needs --workers=1");
  }
  return absl::OkStatus();
}

absl::StatusOr<Workload> Load(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, UsageError(ReadFile(InputPath(path))));
  return ParseTasks(text, path);
}

absl::StatusOr<Workload> Measure(const SimulateFlags& flags, const GraphChoice& choice,
                                 std::vector<ScalingCase>* cases) {
  WEFT_ASSIGN_OR_RETURN(Workload workload,
                        MeasureWorkload({.graph = choice,
                                         .runs = flags.runs,
                                         .tile_seconds = flags.tile * 1e-6,
                                         .cache_bytes = flags.cache * 1e6,
                                         .reuse = !flags.no_reuse},
                                        flags.validate ? absl::MakeSpan(*cases) : absl::Span<ScalingCase>()));
  if (!flags.save.empty()) WEFT_RETURN_IF_ERROR(WriteOut(flags.save, flags.overwrite, PrintTasks(workload)));
  return workload;
}

// `name`: of the graph or of the file of tasks. `critical_path`: in seconds.
void PrintJson(const std::string& name, double critical_path, const Prediction& prediction) {
  nlohmann::ordered_json json = {{"graph", name},
                                 {"policy", prediction.policy->name},
                                 {"workers", prediction.workers},
                                 {"makespan_ms", prediction.makespan * 1e3},
                                 {"speedup", prediction.speedup},
                                 {"utilization", prediction.utilization},
                                 {"critical_path_ms", critical_path * 1e3},
                                 {"bound_ms", prediction.bound * 1e3},
                                 {"measured_ms", nullptr}};
  if (prediction.measured) json["measured_ms"] = *prediction.measured * 1e3;
  std::printf("%s\n", JsonLine(json).c_str());
}

// Returns the columns measured_ms and off.
std::string MeasuredColumns(const std::optional<double>& measured, double predicted) {
  if (!measured) return absl::StrFormat("%11s %7s", "-", "-");
  return absl::StrFormat("%11.2f %+6.1f%%", *measured * 1e3, 100 * (predicted / *measured - 1));
}

void PrintRow(const Prediction& prediction) {
  std::printf("%-23s %7d %12.2f %9.2f %8.2f %11.3f %s\n", prediction.policy->name, prediction.workers,
              prediction.makespan * 1e3, prediction.bound * 1e3, prediction.speedup, prediction.utilization,
              MeasuredColumns(prediction.measured, prediction.makespan).c_str());
  if (prediction.saturated) {
    std::printf("  %d workers are less than %.0f%% faster than the number before them\n", prediction.workers,
                (kMinSpeedup - 1) * 100);
  }
}

void PrintJson(const RankScalingOptions& options, const RanksPrediction& prediction) {
  nlohmann::ordered_json json = {{"graph", options.graph.name},
                                 {"network", ToString(options.network)},
                                 {"ranks", prediction.ranks},
                                 {"workers", options.workers},
                                 {"micro_batches", prediction.micro_batches},
                                 {"step_ms", prediction.seconds * 1e3},
                                 {"efficiency", prediction.efficiency},
                                 {"communication_ms", prediction.communication * 1e3},
                                 {"hidden_ms", prediction.hidden * 1e3},
                                 {"all_simulated", prediction.ranks <= kMaxExactRanks},
                                 {"shard", Name(options.sharding)},
                                 {"measured_ms", nullptr}};
  for (size_t i = 0; i < prediction.bytes.size(); ++i)
    json["memory_bytes"][kShardingNames[i].first] = prediction.bytes[i];
  if (prediction.measured) json["measured_ms"] = *prediction.measured * 1e3;
  std::printf("%s\n", JsonLine(json).c_str());
}

void PrintRow(const RanksPrediction& prediction) {
  const double communication = prediction.communication;
  absl::PrintF("%6d %14d %10.2f %11.1f%% %17.2f %8s %s\n", prediction.ranks, prediction.micro_batches,
               prediction.seconds * 1e3, prediction.efficiency * 100, communication * 1e3,
               communication > 0 ? absl::StrFormat("%.1f%%", 100 * prediction.hidden / communication) : "-",
               MeasuredColumns(prediction.measured, prediction.seconds));
  if (prediction.saturated) {
    std::printf("  %d ranks are less than %.0f%% faster than the number before them\n", prediction.ranks,
                (kMinSpeedup - 1) * 100);
  }
}

void PrintText(const RankScalingOptions& options, const std::vector<RanksPrediction>& predictions) {
  std::printf("%s on ranks of %d workers, over a network of %s\n\n", options.graph.name.c_str(), options.workers,
              ToString(options.network).c_str());
  std::printf("%6s %14s %10s %12s %17s %8s %11s %7s\n", "ranks", "micro_batches", "step_ms", "efficiency",
              "communication_ms", "hidden", "measured_ms", "off");
  for (const RanksPrediction& each : predictions) PrintRow(each);
  if (predictions.back().ranks > kMaxExactRanks) {
    std::printf("\nfor more than %d ranks, only one rank is simulated, and the others are assumed to be as fast\n",
                kMaxExactRanks);
  }
  std::printf("\nmemory of a rank in MB, with each --shard\n%6s", "ranks");
  for (const auto& [name, sharding] : kShardingNames) std::printf(" %10s", name);
  for (const RanksPrediction& each : predictions) {
    std::printf("\n%6d", each.ranks);
    for (const uint64_t bytes : each.bytes) std::printf(" %10.1f", static_cast<double>(bytes) * 1e-6);
  }
  std::printf("\n");
}

// Predicts and prints a line for each number of ranks. With --validate, also runs those numbers of ranks for which this
// machine has cores. `workers`: of each rank.
absl::Status PredictRanks(const SimulateFlags& all, const std::optional<Calibration>& calibration,
                          const GraphChoice& choice, int workers, std::vector<SharingRow> sharing) {
  const RankFlags& flags = all.ranks;
  RankScalingOptions options = {.graph = choice,
                                .workers = workers,
                                .micro_batches_per_rank = flags.micro_batches_per_rank,
                                .micro_batches = flags.micro_batches,
                                .sharding = flags.sharding,
                                .bucket_bytes = static_cast<int64_t>(flags.bucket),
                                .runs = all.runs,
                                .ranks_per_machine = static_cast<int>(flags.ranks_per_machine),
                                .sharing = std::move(sharing),
                                .cache_bytes = all.cache * 1e6,
                                .reuse = !all.no_reuse};
  WEFT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ParseCounts("ranks", flags.ranks, kMaxRanks));
  if (!flags.network.empty()) {
    WEFT_ASSIGN_OR_RETURN(options.network, ParseNetwork(flags.network));
  } else if (calibration && calibration->network()) {
    options.network = *calibration->network();
  }
  for (const int count : ranks) {
    if (all.validate && count <= Cores()) options.ranks_per_machine = std::max(options.ranks_per_machine, count);
  }
  RankScaling scaling(options);
  if (calibration && calibration->has_costs()) {
    scaling.Use(*calibration);
  } else {
    WEFT_RETURN_IF_ERROR(UsageError(scaling.Measure()));
  }
  WEFT_ASSIGN_OR_RETURN(std::vector<RanksPrediction> predictions, UsageError(scaling.PredictAll(ranks)));
  for (RanksPrediction& each : predictions) {
    if (!all.validate || each.ranks > Cores()) continue;
    WEFT_ASSIGN_OR_RETURN(each.measured, scaling.MeasureRanks(each.ranks));
  }
  if (!all.json) PrintText(options, predictions);
  for (const RanksPrediction& each : predictions) {
    if (all.json) PrintJson(options, each);
  }
  return absl::OkStatus();
}

absl::Status SimulateStep(const SimulateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(std::vector<int> workers, ParseCounts("workers", flags.workers, kMaxWorkers));
  const bool ranks = !flags.ranks.ranks.empty();
  if (ranks && flags.given.count("workers") == 0) workers = {Cores()};
  WEFT_ASSIGN_OR_RETURN(const std::optional<Calibration> calibration, ReadCalibration(flags.costs));
  const bool measures = !calibration || !calibration->has_costs();
  WEFT_RETURN_IF_ERROR(ranks ? CheckRankFlags(flags, measures, workers) : CheckFlags(flags, workers));
  WEFT_ASSIGN_OR_RETURN(const GraphChoice choice, ToChoice(flags.choice));
  WEFT_ASSIGN_OR_RETURN(const std::vector<SharingRow> sharing, SharingBy(flags, calibration));
  if (ranks) return PredictRanks(flags, calibration, choice, workers[0], sharing);
  std::vector<ScalingCase> cases = ScalingCases(flags.policy, workers);
  const bool load = !flags.tasks.empty();
  if (!load) std::fprintf(stderr, "measuring a step of %s\n", Printable(choice.name).c_str());
  WEFT_ASSIGN_OR_RETURN(const Workload workload, load ? Load(flags.tasks) : UsageError(Measure(flags, choice, &cases)));
  const std::string& name = load ? flags.tasks : choice.name;
  const size_t tasks = workload.costs.size();
  const double critical_path = workload.critical_path();
  if (flags.save == kStandardOutput) return absl::OkStatus();  // it has the tasks alone
  if (!flags.json) {
    std::printf("%s: %zu tasks, %.2f ms of work on one worker, %.2f ms on the critical path\n\n",
                Printable(name).c_str(), tasks, workload.seconds() * 1e3, critical_path * 1e3);
    std::puts("policy                  workers  makespan_ms  bound_ms  speedup utilization measured_ms     off");
  }
  std::fprintf(stderr, "simulating %zu executions of %zu tasks\n", cases.size(), tasks);
  for (const Prediction& each : PredictAll(workload, cases, sharing)) {
    flags.json ? PrintJson(name, critical_path, each) : PrintRow(each);
  }
  constexpr int kCheckedWorkers = 2;  // up to which simulations of large models agreed with executions
  if (!flags.json && !load && workers.back() > kCheckedWorkers) {
    std::printf(
        "\nOn %d workers, simulated steps of large models were within 10%% of measured ones. On 16, measured "
        "steps took 1.5 to 2.5 times as long, since data moves between cores (docs/scheduling.md).\n",
        kCheckedWorkers);
  }
  return absl::OkStatus();
}

}  // namespace

Command SimulateCommand(CLI::App* weft, const std::string& name) {
  auto flags = std::make_shared<SimulateFlags>();
  Command command =
      MakeCommand(weft, name,
                  {"Predicts how long a training step takes on other numbers of workers or ranks.",
                   "predicts the time of a training step on more workers or ranks",
                   {{"Predicts the time on up to 64 workers.", "weft simulate --graph=gpt2 --workers=1,2,8,64"},
                    {"Compares all policies, a JSON object a line.", "weft simulate --policy=all --json"},
                    {"Predicts the time on up to 64 machines.",
                     "weft simulate --graph=charcpu --ranks=1,2,8,64 --network=25us,10Gbit"}}},
                  flags, Table, SimulateStep);
  AddRun(command.app, &flags->choice);
  return command;
}

}  // namespace weft
