// The executor of policy critical-path.
//
// A worker that finishes a task lowers the counts of those that wait for it, goes on with the most critical one that
// became ready (of the last few, where very many wait), and puts the others on its own deque, where workers that have
// nothing take the oldest.
#ifndef WEFT_GRAPH_STEALING_EXECUTOR_H_
#define WEFT_GRAPH_STEALING_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weft/graph/deque.h"
#include "weft/graph/worker_pool.h"

namespace weft {

class StealingExecutor : public WorkerPool {
 public:
  StealingExecutor(const Schedule* schedule, int threads);

  void Run(Body body) override;
  std::optional<uint64_t> steals() const override;

 private:
  struct alignas(64) Worker {
    explicit Worker(size_t capacity) : deque(capacity) {}

    Deque deque;
    uint64_t steals = 0;  // its own from others, this run
  };
  struct Count {
    std::atomic<uint32_t> left;  // how many it still waits for
    uint32_t waits_for;          // at the start of a run
  };

  void Work(int worker) override;
  bool FindEntry(int worker, uint64_t* entry);
  bool Steal(int worker, uint64_t* entry);
  uint32_t Release(Worker& me, uint32_t begin, uint32_t end);
  void Put(Worker& me, uint64_t entry);

  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Count[]> counts_;  // by task
};

}  // namespace weft

#endif  // WEFT_GRAPH_STEALING_EXECUTOR_H_
