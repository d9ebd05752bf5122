// Where the time of a graph's runs goes, op by op.
//
//   OpTimes times(graph);
//   Runner runner(times.graph(), &parameters);   // the same graph, but that each tile is timed
//   ...
//   for (const OpTimes::Row& row : times.Rows()) ...
#ifndef WEFT_BENCH_OP_TIMES_H_
#define WEFT_BENCH_OP_TIMES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

class OpTimes {
 public:
  explicit OpTimes(const Graph& graph);
  ~OpTimes();

  Graph graph() const { return graph_; }  // not to be run after this object's end
  void Reset();

  // All steps of one op whose first output has one type.
  struct Row {
    std::string op, type;
    double seconds = 0;           // at work, of all workers together, since Reset
    double flops = 0, bytes = 0;  // of a run, by the op's own count
    int64_t tiles = 0;            // of a run
  };
  std::vector<Row> Rows() const;  // those of one op together; within and among ops those that take longest first

 private:
  struct TimedStep;
  std::vector<std::unique_ptr<TimedStep>> steps_;
  Graph graph_;
};

}  // namespace weft

#endif  // WEFT_BENCH_OP_TIMES_H_
