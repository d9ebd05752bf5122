// A worker of QueueExecutor pops a task, runs it outside the mutex, and counts it as finished, again and again. Joins
// that ScheduleBuilder::Build inserted never enter the queue: they finish together with their last predecessor.
#include "weft/graph/run/queue_executor.h"

#include <chrono>
#include <optional>

namespace weft {

bool ReadyCounts::Finish(uint32_t task, int worker, ReadyQueue* queue) {
  bool last = false;
  for (finished_.assign(1, task); !finished_.empty();) {  // grows by the joins that finish at once
    const uint32_t done = finished_.back();
    finished_.pop_back();
    schedule_.ForEachSuccessor(done, [&](uint32_t next) {
      if (--left_[next] > 0) return;
      left_[next] = schedule_.waits_for[next];  // for the next execution
      if (next < schedule_.task_count) {
        queue->Push(next, worker);
      } else if (next == schedule_.end) {
        last = true;
      } else {
        finished_.push_back(next);
      }
    });
  }
  return last;
}

void QueueExecutor::Run(Body body) {
  if (counts_.Finish(schedule().start(), 0, queue_.get())) return;  // there are no tasks
  WorkerPool::Run(body);
  const std::lock_guard lock(mutex_);  // waits until the last call of End has returned
}

void QueueExecutor::End(uint32_t task) {
  const std::lock_guard lock(mutex_);
  queue_->Finish(task, 0);
  if (counts_.Finish(task, 0, queue_.get())) return Finish();
  OfferWork();
}

void QueueExecutor::Work(int worker) {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  for (int idle_polls = 0;; ++idle_polls) {
    while (const std::optional<uint32_t> task = queue_->Pop(worker)) {
      OfferWork();  // the queue may hold more tasks
      lock.unlock();
      const Clock::time_point start = learns_ ? Clock::now() : Clock::time_point();
      RunTask(*task, worker);
      const std::chrono::duration<double> took = (learns_ ? Clock::now() : start) - start;
      lock.lock();
      if (schedule().EndsLater(*task)) continue;
      queue_->Finish(*task, took.count());
      if (counts_.Finish(*task, worker, queue_.get())) return Finish();
      idle_polls = 0;
    }
    lock.unlock();
    if (!BackOff(worker, idle_polls)) return;
    lock.lock();
  }
}

}  // namespace weft
