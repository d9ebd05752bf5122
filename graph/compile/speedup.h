// SpeedupOf tells what bounds the speed of a graph on many workers, by the cost model (graph/compile/cost.h).
//
//   const GraphSpeedup speedup = SpeedupOf(graph);
//   std::printf("at most %.1f times as fast as on one worker\n", speedup.ratio());
#ifndef WEFT_GRAPH_COMPILE_SPEEDUP_H_
#define WEFT_GRAPH_COMPILE_SPEEDUP_H_

#include <utility>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

struct GraphSpeedup {
  double work = 0;  // seconds of all tasks on one worker
  double path = 0;  // seconds of the longest path, if each part of a task has a worker of its own
  // The nodes on the path, each with its seconds there, in descending order of these.
  std::vector<std::pair<NodeId, double>> nodes;

  // Returns the maximum speedup on any number of workers.
  double ratio() const { return path > 0 ? work / path : 1; }
};
// Returns the figures by the cost model.
GraphSpeedup SpeedupOf(const Graph& graph);

// More workers are worth their cost only if they make a step faster by at least this factor.
inline constexpr double kMinSpeedup = 1.05;
// Returns how many workers, at most `most`, a graph is worth by the cost model: the smallest number from which no more
// workers are expected to be kMinSpeedup times as fast. With n workers, the longest path is expected to take its time,
// the other work one n-th of its time, and waking up the helpers 50 µs.
int UsefulWorkers(const Graph& graph, int most);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_SPEEDUP_H_
