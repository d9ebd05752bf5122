// The part of `weft simulate` that predicts a training step on several ranks.
#ifndef WEFT_APPS_INSPECT_PREDICT_RANKS_H_
#define WEFT_APPS_INSPECT_PREDICT_RANKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/hyperparameters.h"
#include "weft/distributed/all_reduce.h"
#include "weft/lab/ranks/rank_scaling.h"
#include "weft/train/sharding.h"

namespace weft {

struct RankFlags {
  std::string ranks, network, costs;
  Sharding sharding = Sharding::kNone;
  int64_t micro_batches_per_rank = 1, micro_batches = 0;
  uint64_t bucket = kBucketBytes;
};
// Returns the table of flags. `flags`: null: for the flags' names alone.
Hyperparameters RankTable(RankFlags* flags);

// Parses whole numbers from 1 to `limit`, separated by commas. Returns them in ascending order, each once. `flag`: for
// errors.
absl::StatusOr<std::vector<int>> ParseCounts(const std::string& flag, const std::string& text, int limit);

// Checks the flags before anything is measured. `workers`: of each rank.
absl::Status CheckPredictRanks(const RankFlags& flags, bool validate, int workers);
// Predicts and prints a line for each number of ranks. `options`: the graph, the machine and the number of runs; this
// function sets the rest from `flags`. `validate`: also runs the ranks that this machine has cores for.
absl::Status PredictRanks(const RankFlags& flags, RankScalingOptions options, bool validate, bool json);

}  // namespace weft

#endif  // WEFT_APPS_INSPECT_PREDICT_RANKS_H_
