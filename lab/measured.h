// These functions measure the times of tiles and tasks, to set priorities by measured times and for simulations.
//
//   absl::StatusOr<Graph> measured = WithMeasuredTimes(*graph, feeds, &parameters);
//   Runner runner(*measured, &parameters, {.policy = &kCriticalPathMeasured});
#ifndef WEFT_LAB_MEASURED_H_
#define WEFT_LAB_MEASURED_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/runner.h"
#include "weft/lab/simulate.h"

namespace weft {

// Collects the times of several executions of one graph, and returns their medians.
class RunTimes {
 public:
  void Add(double seconds, absl::Span<const TileTime> tiles);

  int64_t runs() const { return static_cast<int64_t>(seconds_.size()); }
  double seconds() const;               // the median execution; requires runs() > 0
  std::vector<TileTime> tiles() const;  // the median duration of each tile, given as a time that begins at 0

 private:
  std::vector<double> seconds_;
  std::vector<std::vector<int64_t>> tiles_;  // nanoseconds
};
// Measures `runs` executions on one worker. A first execution, which is not measured, touches the memory.
absl::StatusOr<RunTimes> MeasureOnOneWorker(const Graph& graph, absl::Span<const FeedPair> feeds,
                                            Parameters* parameters, int64_t runs);

// Return the sums of the tiles' times for each task of the graph (0 for joins), and for each kernel call.
std::vector<double> TaskSeconds(const Graph& graph, absl::Span<const TileTime> tiles);
std::vector<double> CallSeconds(const Graph& graph, absl::Span<const TileTime> tiles);
// Returns for each tile its fraction of the elements of its node.
std::vector<double> TileShares(const Graph& graph);
inline constexpr double kCacheBytes = 32e6;  // 32 MB: a typical last-level cache, used by this process alone
// Returns for each kernel call the bytes of operands that come from memory. In the order of the program, an operand is
// in the cache if fewer than `cache` other bytes were touched since its last use.
std::vector<double> MemoryBytes(const Graph& graph, double cache);
// Returns the costs of each task: its seconds, and the bytes that it reads from memory.
std::vector<TaskCost> TaskCosts(const Graph& graph, absl::Span<const double> task_seconds, double cache);

// Returns the graph with priorities computed from these times. Tasks and edges stay the same.
Graph WithTimes(const Graph& graph, absl::Span<const double> task_seconds);
// Returns the graph with priorities computed from the times of an execution on one worker.
absl::StatusOr<Graph> WithMeasuredTimes(const Graph& graph, absl::Span<const FeedPair> feeds, Parameters* parameters);
// Returns the graph without the edges that let values share bytes; edges between a state and its next version remain.
// The result is for simulation only: in an execution, values would overwrite each other.
Graph WithoutReuse(const Graph& graph);

}  // namespace weft

#endif  // WEFT_LAB_MEASURED_H_
