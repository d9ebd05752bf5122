// A RankStep is the training step of one of several ranks. It can be compiled without the other ranks, so that its
// graphs can be printed or simulated. It can be timed alone, with imaginary peers, or run together with the other
// ranks.
//
//   WEFT_ASSIGN_OR_RETURN(auto step, RankStep::Plan({.graph = {"gpt2"}, .rank = 0, .ranks = 8, .micro_batches = 8}));
//   const Graph& graph = step->graph_with_messages();
#ifndef WEFT_LAB_RANKS_RANK_STEP_H_
#define WEFT_LAB_RANKS_RANK_STEP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/distributed/all_reduce.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"
#include "weft/graph/run/transport.h"
#include "weft/lab/calibration.h"
#include "weft/lab/network.h"
#include "weft/lab/real_graphs.h"
#include "weft/lab/timed_step.h"
#include "weft/train/step/step_options.h"
#include "weft/train/step/training_step.h"

namespace weft {

struct RankStepOptions {
  GraphChoice graph;          // of one micro-batch
  int rank = 0, ranks = 1;    // this rank, and the number of ranks
  int64_t micro_batches = 1;  // of a step, on all ranks together; each rank needs one
  Sharding sharding = Sharding::kNone;
  int64_t bucket_bytes = kBucketBytes;
  Transport* transport = nullptr;  // to the other ranks; null: imaginary peers
};

class RankStep {
 public:
  // A graph of the step. `runs`: mean number of executions in a step.
  struct Part {
    size_t graph = 0;  // index in TrainingStep::graphs
    double runs = 0;
    bool has_messages = false;
  };

  // Records and compiles the step. Allocates no memory for values and weights.
  static absl::StatusOr<std::unique_ptr<RankStep>> Plan(const RankStepOptions& options);

  int rank() const { return peers_->rank(); }
  const std::vector<Part>& parts() const { return parts_; }
  const Graph& graph(const Part& part) const { return step_->graphs()[part.graph].graph; }
  // Returns the graph of the rank's last micro-batch, which adds the gradients of all ranks. For one rank, returns the
  // graph of a micro-batch.
  const Graph& graph_with_messages() const;
  // Returns the bytes of weights, optimizer's state, sums of gradients and values.
  uint64_t bytes() const { return step_->allocated_bytes(); }

  // Runs the step `runs` times on one thread. The first call runs it once more beforehand, to touch the memory. All
  // ranks must make the same calls, unless the peers are imaginary. Returns the seconds of each of the `runs` steps.
  absl::StatusOr<std::vector<double>> Run(int64_t runs);
  // After Run, returns the times of the tiles of a part in the last step.
  absl::Span<const TileTime> tiles(const Part& part) const { return step_->tile_times(part.graph); }

 private:
  RankStep() = default;
  absl::StatusOr<double> RunOnce();  // returns seconds

  std::unique_ptr<Transport> peers_;  // imaginary ones
  std::unique_ptr<RealGraph> recorded_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<TrainingStep> step_;
  std::vector<Part> parts_;
  int64_t next_step_ = 0;
};

inline constexpr int kMaxExactRanks = 4;  // of RankScaling

struct RankScalingOptions {
  GraphChoice graph;  // of one micro-batch
  Network network;
  int workers = 1;                     // number of workers of each rank
  int64_t micro_batches_per_rank = 1;  // has an effect if micro_batches is 0
  int64_t micro_batches = 0;           // of a step, on all ranks together; 0: micro_batches_per_rank on each
  Sharding sharding = Sharding::kNone;
  int64_t bucket_bytes = kBucketBytes;  // bytes of gradients that travel together
  int64_t runs = 3;                     // measured steps
  // Number of ranks on each machine. This many ranks run at the same time while Measure measures, because they compete
  // for the machine's memory. Each needs a core of its own.
  int ranks_per_machine = 1;
  std::vector<SharingRow> sharing;   // of the workers of each rank; empty: they lose nothing
  double cache_bytes = kCacheBytes;  // size of the cache that BytesOfCalls models
  bool reuse = true;                 // false: leaves out the edges that let values share bytes
};

struct RanksPrediction {
  int ranks = 1;
  int64_t micro_batches = 1;  // of a step, on all ranks together
  double seconds = 0;         // duration of a step
  // Throughput divided by that of one rank and by the number of ranks.
  double efficiency = 1;
  double communication = 0, hidden = 0;  // seconds; see Simulation
  // Bytes of weights, optimizer's state, sums of gradients and values of the rank, for each element of kShardingNames.
  std::vector<uint64_t> bytes;
  std::optional<double> measured;  // measured seconds of a step, if it was measured
  // Whether this is the first number of ranks whose throughput is less than kMinSpeedup times the throughput of the
  // number before it.
  bool saturated = false;

  double throughput() const { return static_cast<double>(micro_batches) / seconds; }  // micro-batches per second
};

// Estimates the times of the tasks of a graph from measured times of other graphs. If a group of kernel calls was
// measured in another graph, it has the same time here. The times of other groups are estimates of a calibration, which
// is fitted to all measured kernel calls.
class GroupCosts {
 public:
  GroupCosts() = default;
  // Creates an object without measurements: all times are estimates of `calibration`.
  explicit GroupCosts(Calibration calibration) : calibration_(std::move(calibration)) {}

  // Adds the times of an execution on one worker.
  void Add(const Graph& graph, absl::Span<const TileTime> tiles);
  // Returns the seconds of each task; 0 for joins and messages.
  std::vector<double> TaskSeconds(const Graph& graph);

 private:
  struct Mean {
    double sum = 0, count = 0;
  };

  absl::flat_hash_map<std::string, Mean> groups_;  // by ops, types and tiles: the seconds of a group
  std::vector<TileSample> samples_;
  std::optional<Calibration> calibration_;  // fitted to samples_, unless the caller gave it
};

// A RankScaling predicts the time and memory of a training step on other numbers of ranks. Its inputs are times that
// were measured on one rank, and a description of the network.
//
//   RankScaling scaling({.graph = {"gpt2"}, .network = network, .workers = 2});
//   WEFT_RETURN_IF_ERROR(scaling.Measure());
//   WEFT_ASSIGN_OR_RETURN(const RanksPrediction prediction, scaling.Predict(/*ranks=*/64));
//
// A rank of a step runs the graphs of its micro-batches and the graph of the update. The graph of the last micro-batch
// has the messages. Before the update, the ranks exchange their losses in 2 log2(N) short messages, one after the
// other. Up to kMaxExactRanks ranks are all simulated. For more ranks, only one is simulated, and the others are its
// mirror images (lab/simulate.h). Mirror images are never late, so the prediction is a lower bound. The
// simulated rank has the maximum number of micro-batches and, among such ranks, the maximum number of bytes to send and
// to receive.
class RankScaling {
 public:
  explicit RankScaling(const RankScalingOptions& options) : options_(options) {}

  // Measures two steps on one worker: the step of a single rank, and the step of one of two ranks, whose messages end
  // at once.
  absl::Status Measure();
  // Takes the times from `calibration`, in place of Measure.
  void Use(const Calibration& calibration) { costs_ = GroupCosts(calibration); }

  // Returns the prediction for a number of ranks, without its efficiency and `saturated`. Requires Measure or Use.
  absl::StatusOr<RanksPrediction> Predict(int ranks);
  // Returns predictions for several numbers of ranks, which must be in ascending order.
  absl::StatusOr<std::vector<RanksPrediction>> PredictAll(absl::Span<const int> ranks);
  // Runs `ranks` ranks in this process, each on a thread of its own, over an imitated network. Returns the median
  // seconds of `options.runs` steps. Without a core for each rank, the steps take longer. The topology must be flat.
  absl::StatusOr<double> MeasureRanks(int ranks) const;

 private:
  RankStepOptions StepOf(int rank, int ranks) const;
  // Returns the rank to simulate if not all ranks are simulated.
  absl::StatusOr<int> BusiestRank(int ranks) const;
  std::vector<TaskCost> Costs(const Graph& graph);

  RankScalingOptions options_;
  GroupCosts costs_;
};

}  // namespace weft

#endif  // WEFT_LAB_RANKS_RANK_STEP_H_
