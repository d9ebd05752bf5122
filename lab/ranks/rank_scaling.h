// PredictRanks predicts the time and memory of a training step on other numbers of ranks. Its input are times that were
// measured on one rank, and a description of the network.
//
//   RankScaling scaling({.graph = {"gpt2"}, .network = network, .workers = 2});
//   WEFT_RETURN_IF_ERROR(scaling.Measure());
//   WEFT_ASSIGN_OR_RETURN(const RanksPrediction prediction, scaling.Predict(/*ranks=*/64));
//
// A step on N ranks has the graphs of one rank: those of its micro-batches, of which the last has the messages, and the
// update. Before the update, the ranks exchange their losses in 2 log2(N) short messages, one after the other. Up to
// kMaxExactRanks ranks are all simulated. Of more ranks, one is simulated, and the others are its mirror images
// (lab/ranks/simulate_ranks.h). These keep step with it, so the prediction is a lower bound. The simulated rank is the
// one that has the most micro-batches and, of those, the most bytes to send and to receive.
#ifndef WEFT_LAB_RANKS_RANK_SCALING_H_
#define WEFT_LAB_RANKS_RANK_SCALING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/distributed/all_reduce.h"
#include "weft/lab/graph_choice.h"
#include "weft/lab/network.h"
#include "weft/lab/ranks/group_costs.h"
#include "weft/lab/ranks/rank_step.h"
#include "weft/lab/scaling.h"
#include "weft/train/sharding.h"

namespace weft {

inline constexpr int kMaxExactRanks = 4;

struct RankScalingOptions {
  GraphChoice graph;  // of one micro-batch
  Network network;
  int workers = 1;                     // of each rank
  int64_t micro_batches_per_rank = 1;  // if micro_batches is 0
  int64_t micro_batches = 0;           // of a step, on all ranks together; 0: micro_batches_per_rank on each
  Sharding sharding = Sharding::kNone;
  int64_t bucket_bytes = kBucketBytes;  // of gradients that travel together
  int64_t runs = 3;                     // measured steps
  MemoryBandwidth bandwidth = {};       // of each rank; zeros: no limit
  double cache_bytes = kCacheBytes;     // size of the cache that MemoryBytes models
  bool reuse = true;                    // false: leaves out the edges that let values share bytes
};

struct RanksPrediction {
  int ranks = 1;
  int64_t micro_batches = 1;  // of a step, on all ranks together
  double seconds = 0;         // of a step
  // Throughput divided by that of one rank and by the number of ranks.
  double efficiency = 1;
  double communication = 0, hidden = 0;  // seconds, as RanksSimulation has them
  // Bytes of weights, optimizer's state, sums of gradients and values of the rank, for each element of kShardingNames.
  std::vector<uint64_t> bytes;
  std::optional<double> measured;  // seconds
  // Whether this is the first number of ranks that makes the throughput less than kMinSpeedup times that of the number
  // before it.
  bool saturated = false;

  double throughput() const { return static_cast<double>(micro_batches) / seconds; }  // micro-batches per second
};

class RankScaling {
 public:
  explicit RankScaling(const RankScalingOptions& options) : options_(options) {}

  // Measures the graphs of one rank alone and of one of two ranks, on one worker.
  absl::Status Measure();
  // Takes times from `calibration` instead.
  void Use(const Calibration& calibration) { costs_ = GroupCosts(calibration); }

  // Returns the prediction for a number of ranks, with an efficiency of 1. Requires Measure or Use.
  absl::StatusOr<RanksPrediction> Predict(int ranks);
  // Returns predictions for several numbers of ranks, in ascending order.
  absl::StatusOr<std::vector<RanksPrediction>> PredictAll(absl::Span<const int> ranks);
  // Runs `ranks` ranks in this process, each on a thread of its own, over an imitated network. Returns the median
  // seconds of `options.runs` steps. Each rank needs a core; otherwise the steps take longer. The topology must be
  // flat.
  absl::StatusOr<double> MeasureRanks(int ranks) const;

 private:
  RankStepOptions StepOf(int rank, int ranks) const;
  // Returns the simulated seconds of a graph without messages.
  double Alone(const Graph& graph);
  // Returns the rank to simulate instead of all.
  absl::StatusOr<int> BusiestRank(int ranks) const;
  std::vector<TaskCost> Costs(const Graph& graph);

  RankScalingOptions options_;
  GroupCosts costs_;
};

}  // namespace weft

#endif  // WEFT_LAB_RANKS_RANK_SCALING_H_
