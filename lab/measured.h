// What tasks really took, for priorities in place of the cost model's and for simulations.
//
//   absl::StatusOr<Graph> measured = WithMeasuredTimes(*graph, feeds, &parameters);
//   Runner runner(*measured, &parameters, {.policy = &kCriticalPathMeasured});
#ifndef WEFT_GRAPH_MEASURED_H_
#define WEFT_GRAPH_MEASURED_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/runner.h"
#include "weft/graph/simulate.h"

namespace weft {

// By task of the graph: the tiles of its steps, added up; 0 for joins.
std::vector<double> TaskSeconds(const Graph& graph, absl::Span<const TileTime> tiles);
// With what each reads from memory: operands that were not touched while less than `cache` other bytes were, in the
// order of the program.
std::vector<TaskCost> TaskCosts(const Graph& graph, absl::Span<const double> task_seconds, double cache);
// The same tasks and edges, with priorities by these times.
Graph WithTimes(const Graph& graph, absl::Span<const double> task_seconds);
// By those of the second of two runs on one worker.
absl::StatusOr<Graph> WithMeasuredTimes(const Graph& graph, absl::Span<const FeedPair> feeds, Parameters* parameters);

}  // namespace weft

#endif  // WEFT_GRAPH_MEASURED_H_
