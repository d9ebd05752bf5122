// Baselines for our executors: the same schedules under the schedulers of TBB and OpenMP.
#ifndef WEFT_BENCH_BASELINES_H_
#define WEFT_BENCH_BASELINES_H_

#include <algorithm>
#include <vector>

#include "weft/graph/policies/policies.h"

namespace weft {

// Records which workers have run a task of the current execution.
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
// One OpenMP task a task, created when the number of tasks that it waits for becomes zero. OpenMP's own `depend`
// clauses would take two to thirteen times as long.
extern const Policy kOpenMp;

}  // namespace weft

#endif  // WEFT_BENCH_BASELINES_H_
