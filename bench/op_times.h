// OpTimes adds up the time of a graph's executions for each op.
//
//   OpTimes times(graph);
//   Runner runner(graph, &parameters, {.timed = true});
//   ...
//   times.Add(runner.tile_times());   // after each execution to be counted
//   for (const OpTimes::Row& row : times.Rows()) ...
#ifndef WEFT_BENCH_OP_TIMES_H_
#define WEFT_BENCH_OP_TIMES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"

namespace weft {

class OpTimes {
 public:
  explicit OpTimes(Graph graph) : graph_(std::move(graph)), seconds_(graph_.compiled().calls.size(), 0) {}

  void Add(absl::Span<const TileTime> tiles);  // adds the tiles of one execution

  // A row is all kernel calls of one op whose first outputs have the same type.
  struct Row {
    std::string op, type;
    double seconds = 0;           // working time, summed over all workers and executions
    double flops = 0, bytes = 0;  // in one execution, by OpDef::cost
    int64_t tiles = 0;            // in one execution
  };
  std::vector<Row> Rows() const;  // longest first, by the op's total time, then by the row's

 private:
  Graph graph_;
  std::vector<double> seconds_;  // of each kernel call
};

}  // namespace weft

#endif  // WEFT_BENCH_OP_TIMES_H_
