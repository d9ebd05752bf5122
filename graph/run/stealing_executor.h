// A StealingExecutor is the executor of policy critical-path, with one deque of ready tasks for each worker.
//
// A worker that finishes a task lowers the predecessor counts of its successors. The worker then runs the most critical
// successor that became ready, and pushes the other ready ones onto its own deque. Idle workers steal the oldest entry
// of another deque. If a task has more than 8 successors, most of them are first pushed as slices, which other workers
// can steal. A worker that finds no entry takes half of the parts that another worker has left of its task. The worker
// that ends the last part of a task lowers the counts of its successors.
//
// Tasks that a call of End made ready come before a worker's own tasks. They usually make further messages ready, so if
// they waited, the network would be idle.
#ifndef WEFT_GRAPH_RUN_STEALING_EXECUTOR_H_
#define WEFT_GRAPH_RUN_STEALING_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weft/graph/run/deque.h"
#include "weft/graph/run/worker_pool.h"

namespace weft {

class StealingExecutor : public WorkerPool {
 public:
  StealingExecutor(const Schedule* schedule, int threads);

  void Run(Body body) override;
  void End(uint32_t task) override;
  std::optional<uint64_t> steals() const override;

 private:
  struct alignas(64) Worker {
    explicit Worker(size_t capacity) : deque(capacity) {}

    Deque deque;
    uint64_t steals = 0;                         // entries and parts it took from others in this execution
    alignas(64) std::atomic<uint64_t> share{0};  // parts of its task that have not begun
  };
  struct Count {
    std::atomic<uint32_t> left;  // unfinished predecessors
    uint32_t waits_for;          // all predecessors: `left` at the start of an execution
  };

  void Work(int worker) override;
  // Takes an entry from the worker's own deque or steals one; waits while there is none. Returns false if the worker
  // must leave the execution.
  bool FindEntry(int worker, uint64_t* entry);
  bool Steal(int worker, uint64_t* entry);
  // Takes half of the parts that another worker has left, and makes them the worker's share. `entry`: set to their
  // task.
  bool StealParts(int worker, uint64_t* entry);
  // Makes all parts of `task` the worker's share, and runs it.
  bool RunDivisible(uint32_t task, int worker);
  // Runs the worker's share of `task`, from which others may take parts meanwhile. Returns whether it ended the task's
  // last part.
  bool RunShare(uint32_t task, int worker);
  // If a call of End made tasks ready, returns one of them, and pushes `task` unless it is kNone. Otherwise returns
  // `task`.
  uint32_t PreferEnded(Worker& me, uint32_t task);
  // Lowers the predecessor counts of the tasks in Schedule::successors [begin, end). Returns the most critical task
  // that became ready, or kNone, and pushes the other ready tasks onto the deque of `me`. If the range is long, first
  // pushes everything except its end in slices.
  uint32_t Release(Worker& me, uint32_t begin, uint32_t end);
  // Starts `task` and returns true if it is one of Schedule::ends_later. Otherwise returns false.
  bool Starts(uint32_t task);
  void Push(Worker& me, uint64_t entry);

  // The workers of the pool. If the schedule has tasks that end later, one more element follows: its deque belongs to
  // the thread that calls End, and workers only steal from it.
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Count[]> counts_;  // by task
  // By task: the number of parts that have not ended. Null if no task is divided.
  std::unique_ptr<std::atomic<uint32_t>[]> parts_left_;
  alignas(64) std::atomic<int> idle_{0};  // workers that look for work
  std::atomic<int> ending_{0};            // calls of End that have not returned
};

}  // namespace weft

#endif  // WEFT_GRAPH_RUN_STEALING_EXECUTOR_H_
