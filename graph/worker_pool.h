// Executors whose workers are the threads of one TBB arena.
//
// The first time that there is something to share, the other workers are called; so a run without parallelism costs
// none. A worker that finds nothing for long leaves, for other executors to have the thread, and is called again.
#ifndef WEFT_GRAPH_WORKER_POOL_H_
#define WEFT_GRAPH_WORKER_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "oneapi/tbb/task_arena.h"
#include "weft/graph/executor.h"
#include "weft/graph/schedule.h"

namespace weft {

class WorkerPool : public Executor {
 public:
  ~WorkerPool() override;

  void Run(Body body) override;  // the caller is worker 0
  int threads() const override { return threads_; }
  int workers_entered() const override;

 protected:
  // The schedule must outlive the executor. `threads`, at least 1, counts the caller of Run.
  WorkerPool(const Schedule* schedule, int threads);

  // Runs tasks until the run is done, or until Stays says that the worker may go.
  virtual void Work(int worker) = 0;

  const Schedule& schedule() const { return schedule_; }
  void RunTask(uint32_t task, int worker) { (*body_)(task, worker); }
  void EnterCaller() { workers_[0]->entered = true; }
  void Finish() { done_.store(true, std::memory_order_release); }  // all tasks have run
  // There is something for others.
  void Share() {
    if (!shared_.load(std::memory_order_relaxed)) CallWorkers();
  }
  // Waits, after so many looks that found nothing. False once the run is done or, for a worker that was called, when
  // there was nothing for long: before the last look it says so, so that whoever shares later calls it again.
  bool Stays(int worker, int looks);

 private:
  struct Worker {
    bool entered = false;  // this run
    // Guarded by the mutex of calls: it is to come, or hasn't left yet; was called again meanwhile; and, while it waits
    // for someone to come, the next in line.
    bool called = false, again = false;
    WorkerPool* pool = nullptr;
    int number = 0;
    Worker* next = nullptr;
  };
  struct Calls;
  static Calls& AllCalls();
  static void AnswerCall();

  void CallWorkers();
  void Enter(int worker);

  const Schedule& schedule_;
  const int threads_;
  tbb::task_arena arena_;
  std::vector<std::unique_ptr<Worker>> workers_;
  const Body* body_ = nullptr;

  alignas(64) std::atomic<uint32_t> inside_{0};  // workers in the run besides the caller; kOpen while more may come
  std::atomic<bool> shared_{false};              // workers were called
  std::atomic<bool> done_{false};
};

}  // namespace weft

#endif  // WEFT_GRAPH_WORKER_POOL_H_
