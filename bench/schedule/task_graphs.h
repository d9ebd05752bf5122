// MakeTaskGraph makes synthetic graphs of small tasks, to measure the cost of scheduling them:
//
//   chain      t -> t + 1
//   fan        one -> n - 2 others -> one
//   tree       t -> 2t + 1, 2t + 2
//   wavefront  a square: each node waits for the nodes above and to the left
//   random     √n layers of √n nodes; each waits for one to three random nodes of the layer before, always the same
//   diamond    one -> two -> one -> two -> ... -> one
//   one        a graph of one node, which shows the cost of starting an execution
//
// These are patterns of Task Bench (Slaughter and others, 2020), as are the wavefront, which it calls sweep, the tree
// and the random layers. All but the first have layers of 64 nodes:
//
//   trivial     no node waits for another
//   stencil     each node waits for the same node of the layer before and for its two neighbours
//   fft         each node waits for two nodes of the layer before, as in a fast Fourier transform
//   all-to-all  each node waits for all nodes of the layer before
#ifndef WEFT_BENCH_SCHEDULE_TASK_GRAPHS_H_
#define WEFT_BENCH_SCHEDULE_TASK_GRAPHS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weft {

struct TaskGraph {
  uint32_t nodes = 0;
  std::vector<std::pair<uint32_t, uint32_t>> edges;  // (before, after) with before < after, each once
};

std::vector<std::string> TaskGraphNames();
// Makes the graph called `name`, one of TaskGraphNames(), with about `nodes` nodes. Some graphs round `nodes`, for
// example to a square. The graph "one" always has 1 node.
TaskGraph MakeTaskGraph(const std::string& name, uint32_t nodes);

}  // namespace weft

#endif  // WEFT_BENCH_SCHEDULE_TASK_GRAPHS_H_
