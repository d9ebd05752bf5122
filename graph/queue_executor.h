// The executor of any policy: all workers share one queue of what is ready, under a mutex.
#ifndef WEFT_GRAPH_QUEUE_EXECUTOR_H_
#define WEFT_GRAPH_QUEUE_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/graph/ready_queue.h"
#include "weft/graph/worker_pool.h"

namespace weft {

// Counts what the tasks of a schedule still wait for, and pushes those that wait for nothing any more.
class ReadyCounts {
 public:
  explicit ReadyCounts(const Schedule* schedule) : schedule_(*schedule), left_(schedule->waits_for) {}

  // `task` was finished by `worker`; schedule.start() begins a run. True if that was the last one: then the counts are
  // as before the run.
  bool Finish(uint32_t task, int worker, ReadyQueue* queue);

 private:
  const Schedule& schedule_;
  std::vector<uint32_t> left_, finished_;
};

class QueueExecutor : public WorkerPool {
 public:
  QueueExecutor(const Schedule* schedule, int threads, std::unique_ptr<ReadyQueue> queue)
      : WorkerPool(schedule, threads), queue_(std::move(queue)), counts_(schedule) {}

  void Run(Body body) override;

 private:
  void Work(int worker) override;

  std::mutex mutex_;
  std::unique_ptr<ReadyQueue> queue_;
  ReadyCounts counts_;
};

}  // namespace weft

#endif  // WEFT_GRAPH_QUEUE_EXECUTOR_H_
