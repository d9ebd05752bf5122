// Predicts a training step on several ranks, for `weft simulate --ranks`.
#ifndef WEFT_APPS_INSPECT_PREDICT_RANKS_H_
#define WEFT_APPS_INSPECT_PREDICT_RANKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/distributed/all_reduce.h"
#include "weft/lab/calibration.h"
#include "weft/lab/ranks/rank_scaling.h"
#include "weft/options/hyperparameters.h"
#include "weft/train/step/step_options.h"

namespace weft {

struct RankFlags {
  std::string ranks, network;
  Sharding sharding = Sharding::kNone;
  int64_t micro_batches_per_rank = 1, micro_batches = 0, ranks_per_machine = 1;
  uint64_t bucket = kBucketBytes;
};
Hyperparameters RankTable(RankFlags* flags);

// Parses whole numbers from 1 to `limit`, separated by commas. Returns them in ascending order, without duplicates.
// `flag`: name of the flag, for error messages.
absl::StatusOr<std::vector<int>> ParseCounts(const std::string& flag, const std::string& text, int limit);

// Checks the flags before the command measures. `measures`: whether costs of ops are measured. `workers`: number of
// workers of each rank.
absl::Status CheckPredictRanks(const RankFlags& flags, bool measures, bool validate, int workers);
// Predicts and prints a line for each number of ranks. `options`: the graph, the machine and the number of runs; this
// function sets the rest from `flags`. `calibration`: the file of --costs, if one is given. `validate`: also runs those
// numbers of ranks for which this machine has cores. `json`: prints JSON objects.
absl::Status PredictRanks(const RankFlags& flags, const std::optional<Calibration>& calibration,
                          RankScalingOptions options, bool validate, bool json);

}  // namespace weft

#endif  // WEFT_APPS_INSPECT_PREDICT_RANKS_H_
