#include "weft/apps/inspect/predict_ranks.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/base/cores.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/graph/compile/speedup.h"
#include "weft/lab/network.h"

namespace weft {
namespace {

constexpr int kMaxRanks = 4096;

void PrintJson(const std::string& graph, const RankScalingOptions& options, const RanksPrediction& prediction) {
  nlohmann::ordered_json json = {{"graph", graph},
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
  std::string hidden = "-", measured = "-", off = "-";
  if (prediction.communication > 0) {
    hidden = absl::StrFormat("%.1f%%", 100 * prediction.hidden / prediction.communication);
  }
  if (prediction.measured) {
    measured = absl::StrFormat("%.2f", *prediction.measured * 1e3);
    off = absl::StrFormat("%+.1f%%", 100 * (prediction.seconds / *prediction.measured - 1));
  }
  absl::PrintF("%6d %14d %10.2f %11.1f%% %17.2f %8s %11s %7s\n", prediction.ranks, prediction.micro_batches,
               prediction.seconds * 1e3, prediction.efficiency * 100, prediction.communication * 1e3, hidden, measured,
               off);
  if (prediction.saturated) {
    std::printf("  %d ranks are less than %.0f%% faster than fewer\n", prediction.ranks, (kMinSpeedup - 1) * 100);
  }
}

void PrintText(const std::string& graph, const RankScalingOptions& options,
               const std::vector<RanksPrediction>& predictions) {
  std::printf("%s on ranks of %d workers, over a network of %s\n\n", graph.c_str(), options.workers,
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

}  // namespace

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

absl::StatusOr<std::vector<int>> ParseCounts(const std::string& flag, const std::string& text, int limit) {
  std::vector<int> counts;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    int count = 0;
    if (!absl::SimpleAtoi(word, &count) || count < 1 || count > limit) {
      return InvalidArgument("--", flag, ": '", word, "' is not a whole number from 1 to ", limit);
    }
    counts.push_back(count);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

absl::Status CheckPredictRanks(const RankFlags& flags, bool measures, bool validate, int workers) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ParseCounts("ranks", flags.ranks, kMaxRanks));
  if (!flags.network.empty()) {
    const absl::StatusOr<Network> network = ParseNetwork(flags.network);
    if (!network.ok()) return InvalidArgument("--network: ", network.status().message());
    if (validate && network->ranks_per_switch > 0) {
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
  if (validate && workers != 1) {
    return InvalidArgument("--validate runs each rank on one thread: it needs --workers=1");
  }
  return absl::OkStatus();
}

absl::Status PredictRanks(const RankFlags& flags, const std::optional<Calibration>& calibration,
                          RankScalingOptions options, bool validate, bool json) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ParseCounts("ranks", flags.ranks, kMaxRanks));
  if (!flags.network.empty()) {
    WEFT_ASSIGN_OR_RETURN(options.network, ParseNetwork(flags.network));
  } else if (calibration && calibration->network()) {
    options.network = *calibration->network();
  }
  options.sharding = flags.sharding;
  options.micro_batches_per_rank = flags.micro_batches_per_rank;
  options.micro_batches = flags.micro_batches;
  options.bucket_bytes = static_cast<int64_t>(flags.bucket);
  options.ranks_per_machine = static_cast<int>(flags.ranks_per_machine);
  if (validate) {
    for (const int count : ranks) {
      if (count <= Cores()) options.ranks_per_machine = std::max(options.ranks_per_machine, count);
    }
  }
  RankScaling scaling(options);
  if (calibration && calibration->has_costs()) {
    scaling.Use(*calibration);
  } else {
    WEFT_RETURN_IF_ERROR(UsageError(scaling.Measure()));
  }
  WEFT_ASSIGN_OR_RETURN(std::vector<RanksPrediction> predictions, UsageError(scaling.PredictAll(ranks)));
  for (RanksPrediction& each : predictions) {
    if (!validate || each.ranks > Cores()) continue;
    WEFT_ASSIGN_OR_RETURN(each.measured, scaling.MeasureRanks(each.ranks));
  }
  if (!json) {
    PrintText(options.graph.name, options, predictions);
    return absl::OkStatus();
  }
  for (const RanksPrediction& each : predictions) PrintJson(options.graph.name, options, each);
  return absl::OkStatus();
}

}  // namespace weft
