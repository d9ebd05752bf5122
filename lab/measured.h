// These functions measure the times of tiles and tasks. Priorities and simulations use the measured times.
//
//   absl::StatusOr<Graph> measured = WithMeasuredTimes(*graph, feeds, &parameters);
//   Runner runner(*measured, &parameters, {.policy = &kCriticalPathMeasured});
#ifndef WEFT_LAB_MEASURED_H_
#define WEFT_LAB_MEASURED_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"
#include "weft/lab/simulate.h"

namespace weft {

// Collects the times of the tiles in several executions of one graph, and returns their medians.
class RunTimes {
 public:
  void Add(absl::Span<const TileTime> tiles);

  int64_t runs() const { return runs_; }
  std::vector<TileTime> tiles() const;  // the median duration of each tile, given as a time that begins at 0

 private:
  int64_t runs_ = 0;
  std::vector<std::vector<int64_t>> tiles_;  // nanoseconds
};
// Measures `runs` executions, at least 1, on one worker. A first execution, which is not measured, touches the memory.
absl::StatusOr<RunTimes> MeasureOnOneWorker(const Graph& graph, absl::Span<const FeedPair> feeds,
                                            Parameters* parameters, int64_t runs);

// Return sums of the times of tiles: TaskSeconds for each task (0 for joins), CallSeconds for each kernel call.
// `tiles`: the time of each tile of the graph.
std::vector<double> TaskSeconds(const Graph& graph, absl::Span<const TileTime> tiles);
std::vector<double> CallSeconds(const Graph& graph, absl::Span<const TileTime> tiles);
// Returns the bytes of all messages of a call.
int64_t MessageBytes(const CompiledGraph& graph, const KernelCall& call);
// Returns the messages of a graph, for SimulateRanks.
std::vector<RankMessage> MessagesOf(const CompiledGraph& graph);
// Returns for each tile its number of elements, divided by that of all tiles of the same kernel call.
std::vector<double> TileShares(const Graph& graph);
inline constexpr double kCacheBytes = 32e6;  // 32 MB: a typical last-level cache, used by this process alone
// Estimates of a kernel call. An operand is in the cache if at most `cache` other bytes were touched since its last
// use, in the order of the program.
struct CallBytes {
  double memory = 0;  // bytes of inputs and outputs that are not in the cache
  double moved = 0;   // bytes of inputs in the cache that another group wrote, once for each group that reads them
};
std::vector<CallBytes> BytesOfCalls(const Graph& graph, double cache);
// Returns the cost of each task: its entry of `task_seconds`, and equal shares of the bytes of its group's calls.
std::vector<TaskCost> TaskCosts(const Graph& graph, absl::Span<const double> task_seconds, double cache);

// Returns the graph with priorities computed from `task_seconds`. Tasks and edges stay the same.
Graph WithTimes(const Graph& graph, absl::Span<const double> task_seconds);
// Returns the graph with priorities computed from the times of an execution on one worker.
absl::StatusOr<Graph> WithMeasuredTimes(const Graph& graph, absl::Span<const FeedPair> feeds, Parameters* parameters);
// Returns the graph without the edges that only order users of shared bytes. Readers of a state still come before the
// writer of its next version. The result is for simulation only: in an execution, values would overwrite each other.
Graph WithoutReuse(const Graph& graph);

}  // namespace weft

#endif  // WEFT_LAB_MEASURED_H_
