// What our executors are compared with: the same schedules under other libraries' schedulers.
#ifndef WEFT_BENCH_BASELINES_H_
#define WEFT_BENCH_BASELINES_H_

#include <algorithm>
#include <vector>

#include "weft/graph/policies/policies.h"

namespace weft {

// Which workers have run a task of this run.
class EnteredWorkers {
 public:
  explicit EnteredWorkers(int threads) : workers_(static_cast<size_t>(threads)) {}

  void Reset() { std::fill(workers_.begin(), workers_.end(), Worker{}); }
  void Enter(int worker) { workers_[static_cast<size_t>(worker)].entered = true; }  // called by this worker
  int count() const {
    return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [](const Worker& w) { return w.entered; }));
  }

 private:
  struct alignas(64) Worker {
    bool entered = false;
  };
  std::vector<Worker> workers_;
};

extern const Policy kFlowGraph;  // a tbb::flow::graph: one continue_node a task
// One OpenMP task a task, created when the count of those that it waits for becomes zero. With `depend` clauses in
// place of counts it takes two to thirteen times as long.
extern const Policy kOpenMp;

}  // namespace weft

#endif  // WEFT_BENCH_BASELINES_H_
