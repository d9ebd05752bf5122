// The baselines run the same schedules as Weft's executors, under the schedulers of TBB and OpenMP.
#ifndef WEFT_BENCH_SCHEDULE_BASELINES_H_
#define WEFT_BENCH_SCHEDULE_BASELINES_H_

#include <algorithm>
#include <vector>

#include "weft/graph/run/policies/policies.h"

namespace weft {

// Remembers which workers have run a task in the current execution.
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

extern const Policy kFlowGraph;  // a tbb::flow::graph with one continue_node for each task
// Each task of the schedule is an OpenMP task, which is created when its last predecessor ends. With OpenMP's `depend`
// clauses instead, an execution takes 2 to 13 times as long.
extern const Policy kOpenMp;

}  // namespace weft

#endif  // WEFT_BENCH_SCHEDULE_BASELINES_H_
