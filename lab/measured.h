// What tiles and tasks really took, for priorities in place of the cost model's and for simulations.
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

// The medians of some runs of one graph.
class RunTimes {
 public:
  void Add(double seconds, absl::Span<const TileTime> tiles);

  int64_t runs() const { return static_cast<int64_t>(seconds_.size()); }
  double seconds() const;               // of a run; there was one
  std::vector<TileTime> tiles() const;  // each from 0 on

 private:
  std::vector<double> seconds_;
  std::vector<std::vector<int64_t>> tiles_;  // nanoseconds
};
// Of so many runs on one worker, after one that touches memory for the first time.
absl::StatusOr<RunTimes> MeasureOnOneWorker(const Graph& graph, absl::Span<const FeedPair> feeds,
                                            Parameters* parameters, int64_t runs);

// The tiles' times, added up. By task of the graph, 0 for joins; by kernel call.
std::vector<double> TaskSeconds(const Graph& graph, absl::Span<const TileTime> tiles);
std::vector<double> CallSeconds(const Graph& graph, absl::Span<const TileTime> tiles);
// By tile: how much of its node it is, of 1.
std::vector<double> TileShares(const Graph& graph);
inline constexpr double kCacheBytes = 32e6;  // as if nobody else used it
// By kernel call: bytes that its operands bring from memory, being those that were not touched while less than `cache`
// other bytes were, in the order of the program.
std::vector<double> MemoryBytes(const Graph& graph, double cache);
// With what each task brings from memory.
std::vector<TaskCost> TaskCosts(const Graph& graph, absl::Span<const double> task_seconds, double cache);

// The same tasks and edges, with priorities by these times.
Graph WithTimes(const Graph& graph, absl::Span<const double> task_seconds);
// By those of a run on one worker.
absl::StatusOr<Graph> WithMeasuredTimes(const Graph& graph, absl::Span<const FeedPair> feeds, Parameters* parameters);
// The same kernel calls and tiles, without the edges that let values share bytes, but for states and their next
// versions: to simulate only, because in a run values would overwrite each other.
Graph WithoutReuse(const Graph& graph);

}  // namespace weft

#endif  // WEFT_LAB_MEASURED_H_
