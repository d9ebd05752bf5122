// Measures a training step (micro-batches, clip, AdamW) on several ranks, and the fraction of its communication that is
// hidden behind kernels.
//
//   mpirun -np 2 --bind-to none bazel-bin/bench/ranks_bench --model=gpt2 --micro-batches=2
//   bazel run -c opt //bench:ranks_bench -- --ranks=2 --network=25us,10Gbit
//
// Under mpirun, each process is a rank. Without mpirun, the ranks are --ranks threads, which an imitated network
// connects. The checksum of the weights is the same for any number of ranks.
//
//   message_ms       time of a step in which a message of this rank was under way
//   hidden_ms        the part of message_ms in which at least one worker of this rank ran a kernel
//   hidden_fraction  hidden_ms divided by message_ms, over all steps; the minimum over ranks
//   planned_mb       bytes of weights, other state, and the values of graphs that ran, of each rank under mpirun
//   private_mb       bytes that became resident between the step's creation and its end, except files and shared memory
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/bench/command_line.h"
#include "weft/bench/ranked_step.h"
#include "weft/distributed/connect_messenger.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/messenger.h"
#include "weft/distributed/piece_name.h"
#include "weft/distributed/ranks.h"
#include "weft/distributed/weight_gathers.h"
#include "weft/graph/run/transport.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/measured.h"
#include "weft/lab/network.h"
#include "weft/lab/real_graphs.h"
#include "weft/train/step/step_options.h"
#include "weft/train/step/training_step.h"

namespace weft {
namespace {

constexpr double kRate = 3e-4;

struct Options {
  RankedOptions ranked;
  std::optional<int> ranks;
  InProcessOptions network;
  int64_t bucket_bytes = kBucketBytes;
  Sharding sharding = Sharding::kNone;
};

// A graph of a step whose messages are measured.
struct MessageGraph {
  size_t index = 0;  // in TrainingStep::graphs()
  int64_t bytes_sent = 0;
};

int64_t SentBytes(const CompiledGraph& graph, KernelCall call) {
  std::erase_if(call.messages, [](const Message& message) { return !message.sends; });
  return MessageBytes(graph, call);
}

std::vector<MessageGraph> FindMessageGraphs(const TrainingStep& step) {
  std::vector<MessageGraph> found;
  for (size_t i = 0; i < step.graphs().size(); ++i) {
    const CompiledGraph& graph = step.graphs()[i].graph.compiled();
    MessageGraph messages = {.index = i};
    bool any = false;
    for (const KernelCall& call : graph.calls) {
      if (call.messages.empty()) continue;
      any = true;
      messages.bytes_sent += SentBytes(graph, call);
    }
    if (any) found.push_back(messages);
  }
  return found;
}

// Returns the bytes that the step allocates, without the values of graphs that never ran. Such graphs are for batches
// without targets, and their memory is never resident.
int64_t PlannedBytes(const TrainingStep& step) {
  auto bytes = static_cast<int64_t>(step.allocated_bytes());
  for (size_t i = 0; i < step.graphs().size(); ++i) {
    const bool ran = !step.tile_times(i).empty();
    if (!ran) bytes -= static_cast<int64_t>(step.graphs()[i].graph.compiled().memory.planned);
  }
  return bytes;
}

// Copies the weights of a step that divides weights to `whole`. Without divided weights, does nothing.
absl::Status GatherWeights(const Ranks& ranks, absl::Span<const DividedWeight> divided, const Parameters& parameters,
                           Parameters* whole) {
  if (divided.empty()) return absl::OkStatus();
  for (const std::string& name : parameters.Names(Parameters::kWeights)) {
    if (ParsePiece(name)) continue;
    const Tensor from = *parameters.Find(name);
    WEFT_RETURN_IF_ERROR(whole->Create({{{name, from.type, Zeros()}}}));
    std::memcpy(whole->Find(name)->data, from.data, from.type.bytes());
  }
  for (const DividedWeight& weight : divided) {
    WEFT_RETURN_IF_ERROR(whole->Create({{{weight.name, weight.type, Zeros()}}}));
    GatherRows(ranks, weight, parameters, GatherTo::kAll, whole->Find(weight.name)->data);
  }
  return absl::OkStatus();
}

// Runs the steps of one rank. Returns the row of all ranks.
absl::StatusOr<nlohmann::ordered_json> RunRank(const Options& options, const Ranks& ranks) {
  RankedModel model(options.ranked);
  WEFT_RETURN_IF_ERROR(model.tape()->status());
  const TrainingProgram program = {.tape = model.tape(), .loss = model.loss()};
  Parameters parameters({.seed = 1});
  const int64_t private_bytes = PrivateBytes();
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingStep> step,
                        TrainingStep::Plan({&program, 1}, BenchOptimizer(),
                                           {.micro_batches = options.ranked.micro_batches,
                                            .threads = options.ranked.threads,
                                            .precision = options.ranked.dtype(),
                                            .timed = true,
                                            .ranks = ranks,
                                            .sharding = options.sharding,
                                            .bucket_bytes = options.bucket_bytes}));
  WEFT_RETURN_IF_ERROR(step->Allocate(&parameters));
  RankFigures figures;
  const std::vector<MessageGraph> graphs = FindMessageGraphs(*step);
  std::vector<std::pair<size_t, std::vector<TileTime>>> times;  // graph's index and times, of steps that count
  for (int i = 0; i < options.ranked.steps; ++i) {
    const Clock::time_point start = Clock::now();
    WEFT_ASSIGN_OR_RETURN(const StepResult result, step->Run(i, kRate, [&](MicroBatch micro_batch) {
      return absl::StatusOr<TrainingBatch>(model.Batch(micro_batch.index));
    }));
    figures.step_seconds.push_back(SecondsSince(start));
    figures.loss = result.loss;
    for (const MessageGraph& graph : graphs) {
      const absl::Span<const TileTime> measured = step->tile_times(graph.index);
      if (i >= 2 && !measured.empty()) times.push_back({graph.index, {measured.begin(), measured.end()}});
      if (i == 0 && !measured.empty()) figures.bytes_sent += graph.bytes_sent;
    }
  }
  // Ranks that are threads share the memory of their process.
  if (!options.ranks) {
    figures.planned_bytes = PlannedBytes(*step);
    figures.private_bytes = PrivateBytes() - private_bytes;
  }
  for (const auto& [graph, tiles] : times) {
    const Communication communication = Timeline(step->graphs()[graph].graph, tiles).communication();
    figures.message_seconds.push_back(communication.communication_seconds);
    figures.hidden_seconds.push_back(communication.hidden_seconds);
  }
  Parameters whole;  // the weights, if the ranks divide them
  WEFT_RETURN_IF_ERROR(GatherWeights(ranks, step->divided(), parameters, &whole));
  figures.checksum = WeightChecksum(step->divided().empty() ? parameters : whole);
  const nlohmann::ordered_json mine = RankRow(options.ranked, model, ranks.size(), figures);
  WEFT_RETURN_IF_ERROR(ranks.CheckEqual("the checksum of the weights", mine["checksum"].get<std::string>()));
  std::vector<nlohmann::ordered_json> rows;
  for (const std::string& row : ranks.AllGather(mine.dump())) rows.push_back(nlohmann::ordered_json::parse(row));
  return CombinedRow(rows);
}

// Runs ranks that are threads of this process. Returns the row of all ranks.
absl::StatusOr<nlohmann::ordered_json> RunThreads(const Options& options) {
  std::vector<absl::StatusOr<nlohmann::ordered_json>> rows(static_cast<size_t>(*options.ranks));
  RunRanks(
      *options.ranks,
      [&](Transport* transport) { rows[static_cast<size_t>(transport->rank())] = RunRank(options, Ranks(transport)); },
      options.network);
  return rows[0];
}

absl::Status Measure(const Options& options) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Messenger> messenger, ConnectMessenger());
  if (messenger != nullptr && options.ranks) {
    return InvalidArgument("--ranks: this program is one of several ranks already");
  }
  const Ranks ranks(messenger.get());
  const bool threads = options.ranks && *options.ranks > 1;
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json row, threads ? RunThreads(options) : RunRank(options, ranks));
  if (ranks.first()) PrintRow(row, options.ranked.json);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures training steps on several ranks.", "ranks_bench");
  SetUp(&app);
  AddRankedFlags(&app, &options.ranked);
  app.add_option("--ranks", options.ranks, "number of ranks that are threads of this process")
      ->check(CLI::Range(1, 64));
  app.add_option_function<std::string>(
         "--network",
         [&](const std::string& text) {
           const absl::StatusOr<Network> network = ParseNetwork(text);
           if (!network.ok()) throw CLI::ValidationError("--network", std::string(network.status().message()));
           options.network = Imitation(*network);
         },
         "latency and bandwidth between such ranks, like 25us,10Gbit; by default there are no delays")
      ->needs("--ranks");
  const std::map<std::string, Sharding> shardings(std::begin(kShardingNames), std::end(kShardingNames));
  app.add_option("--shard", options.sharding, "what the ranks divide: none, optimizer, gradients or weights")
      ->transform(CLI::Transformer(shardings));
  app.add_option("--bucket-bytes", options.bucket_bytes, "minimum number of bytes in which gradients travel")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  return RunProgram(&app, argc, argv, [&options] {
    const absl::Status status = Measure(options);
    if (status.ok()) return 0;
    std::fprintf(stderr, "ranks_bench: %s\n", std::string(status.message()).c_str());
    return absl::IsInvalidArgument(status) ? 2 : 1;
  });
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) { return weft::Main(argc, argv); }
