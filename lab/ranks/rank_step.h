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
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/distributed/all_reduce.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"
#include "weft/graph/run/transport.h"
#include "weft/lab/real_graphs.h"
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

}  // namespace weft

#endif  // WEFT_LAB_RANKS_RANK_STEP_H_
