// A QueueExecutor runs any policy that has a queue. All workers share this queue of ready tasks, under a mutex.
#ifndef WEFT_GRAPH_RUN_QUEUE_EXECUTOR_H_
#define WEFT_GRAPH_RUN_QUEUE_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/graph/run/executor.h"
#include "weft/graph/run/worker_pool.h"

namespace weft {

// ReadyCounts counts the unfinished predecessors of each task. When a count reaches 0, the task is pushed to the queue.
class ReadyCounts {
 public:
  explicit ReadyCounts(const Schedule* schedule) : schedule_(*schedule), left_(schedule->waits_for) {}

  // Records that `worker` finished `task`, and pushes the tasks that became ready. To begin an execution, callers pass
  // schedule.start() as `task`. Returns true if the execution is complete; the counts are then reset for the next one.
  bool Finish(uint32_t task, int worker, ReadyQueue* queue);

 private:
  const Schedule& schedule_;
  std::vector<uint32_t> left_, finished_;
};

class QueueExecutor : public WorkerPool {
 public:
  // `learns`: whether the queue needs the durations of tasks.
  QueueExecutor(const Schedule* schedule, int threads, std::unique_ptr<ReadyQueue> queue, bool learns)
      : WorkerPool(schedule, threads), queue_(std::move(queue)), learns_(learns), counts_(schedule) {}

  void Run(Body body) override;
  void End(uint32_t task) override;
  void Forget() override { queue_->Forget(); }

 private:
  void Work(int worker) override;

  std::mutex mutex_;
  std::unique_ptr<ReadyQueue> queue_;
  const bool learns_;
  ReadyCounts counts_;
};

}  // namespace weft

#endif  // WEFT_GRAPH_RUN_QUEUE_EXECUTOR_H_
