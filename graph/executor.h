// The executor: workers of one TBB arena take tiles of ready steps until all are done.
#ifndef WEFT_GRAPH_EXECUTOR_H_
#define WEFT_GRAPH_EXECUTOR_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "oneapi/tbb/task_arena.h"
#include "weft/graph/graph.h"

namespace weft {

class Executor {
 public:
  Executor(const CompiledGraph* graph, int threads);

  using RunTile = absl::FunctionRef<void(uint32_t step, const Rect& tile, int worker)>;
  using BeginStep = absl::FunctionRef<void(uint32_t step)>;
  // Runs every tile of every step once, after all that the step waits for. `begin` is called once for each step, before
  // its first tile. Workers are numbered 0 .. threads - 1; the caller is 0.
  void Run(BeginStep begin, RunTile run_tile);

  int threads() const { return threads_; }

 private:
  struct Task {
    uint32_t step = 0;
    uint32_t tile = 0;
  };

  void Work(int worker, BeginStep begin, RunTile run_tile);
  bool Take(Task* task);
  void Finish(uint32_t step, BeginStep begin);
  void MakeReady(uint32_t step, BeginStep begin);

  const CompiledGraph& graph_;
  const int threads_;
  tbb::task_arena arena_;

  std::unique_ptr<std::atomic<uint32_t>[]> waits_for_, tiles_left_;  // by step
  std::atomic<uint32_t> steps_left_{0};
  std::atomic<uint32_t> ready_count_{0};  // of ready_, to look at without the lock
  std::mutex mutex_;
  std::vector<Task> ready_;  // a heap: the first step of the serial order on top, with its next tile
};

}  // namespace weft

#endif  // WEFT_GRAPH_EXECUTOR_H_
