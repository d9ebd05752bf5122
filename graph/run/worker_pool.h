// A WorkerPool is the base class of executors. Worker 0 is the caller of Run. All other workers are helpers, which run
// on threads of TBB.
//
// Helpers are woken when a worker first has work to offer, so an execution without parallelism wakes none. A helper
// that finds no work for some time leaves its thread to other executors, and is woken again when there is more work.
#ifndef WEFT_GRAPH_RUN_WORKER_POOL_H_
#define WEFT_GRAPH_RUN_WORKER_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "oneapi/tbb/task_arena.h"
#include "weft/graph/run/executor.h"
#include "weft/graph/schedule.h"

namespace weft {

class WorkerPool : public Executor {
 public:
  ~WorkerPool() override;

  void Run(Body body) override;
  int threads() const override { return threads_; }
  int workers_entered() const override;

 protected:
  // `schedule` must outlive the executor. `threads` (at least 1) includes the caller of Run.
  WorkerPool(const Schedule* schedule, int threads);

  // Runs tasks as `worker` until the execution is done or BackOff returns false.
  virtual void Work(int worker) = 0;

  const Schedule& schedule() const { return schedule_; }
  void RunTask(uint32_t task, int worker) { (*body_)({task, 0, schedule_.PartsOf(task)}, worker); }
  void RunParts(TaskPart part, int worker) { (*body_)(part, worker); }
  void EnterCaller() { workers_[0]->entered = true; }
  // Ends the execution. Called once all tasks have run.
  void Finish() { done_.store(true, std::memory_order_release); }
  // Wakes all helpers, unless they have been woken and none has given up since. A worker must call OfferWork after it
  // has made work available to others.
  void OfferWork() {
    if (!helpers_woken_.load(std::memory_order_relaxed)) WakeHelpers();
  }
  // Waits after `idle_polls` empty polls in a row. Returns false when the execution is done, or when `worker` is a
  // helper that has idled too long. Before its final poll the helper clears `helpers_woken_`, so that a later OfferWork
  // wakes it again.
  bool BackOff(int worker, int idle_polls);

 private:
  // Guarded by WakeUps::mutex, except `entered`.
  struct Worker {
    bool entered = false;  // has taken part in the current execution
    bool woken = false;    // its wake-up is pending, or it is active
    bool again = false;    // was woken once more while `woken`
    WorkerPool* pool = nullptr;
    int number = 0;
    Worker* next = nullptr;  // the link of the queue of wake-ups
  };
  struct WakeUps;
  static WakeUps& PendingWakeUps();
  static void AnswerWakeUp();

  void WakeHelpers();
  void Enter(int worker);

  const Schedule& schedule_;
  const int threads_;
  tbb::task_arena arena_;
  std::vector<std::unique_ptr<Worker>> workers_;
  const Body* body_ = nullptr;

  // The number of helpers in the execution, plus kOpen while more may enter.
  alignas(64) std::atomic<uint32_t> helpers_{0};
  std::atomic<bool> helpers_woken_{false};
  std::atomic<bool> done_{false};
};

}  // namespace weft

#endif  // WEFT_GRAPH_RUN_WORKER_POOL_H_
