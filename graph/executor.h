// The executor: workers of one TBB arena run the tasks of a schedule, each once, after all that it waits for.
//
//   Executor executor(&schedule, /*threads=*/4);
//   executor.Run([&](uint32_t task, int worker) { ... });
//
// A worker that finishes a task lowers the counts of those that wait for it, goes on with the most critical one that
// became ready (of the last few, where very many wait), and puts the others on its own deque, where workers that have
// nothing take the oldest. The first time that there is something to share, the other workers are called; so a run
// without parallelism costs none. A worker that finds nothing for long leaves, for other executors to have the thread,
// and is called again.
#ifndef WEFT_GRAPH_EXECUTOR_H_
#define WEFT_GRAPH_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "oneapi/tbb/task_arena.h"
#include "weft/graph/deque.h"
#include "weft/graph/schedule.h"

namespace weft {

class Executor {
 public:
  // The schedule must outlive the executor. `threads`, at least 1, counts the caller of Run.
  Executor(const Schedule* schedule, int threads);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Called with joins too, if they were added by the schedule's owner.
  using Body = absl::FunctionRef<void(uint32_t task, int worker)>;
  // Runs every task once. Workers are numbered 0 .. threads - 1; the caller is 0. One Run at a time.
  void Run(Body body);

  int threads() const { return threads_; }
  int workers_entered() const;  // into the last run, with the caller

 private:
  struct alignas(64) Worker {
    explicit Worker(size_t capacity) : deque(capacity) {}

    Deque deque;
    bool entered = false;  // this run
    // Guarded by the mutex of calls: it is to come, or hasn't left yet; was called again meanwhile; and, while it waits
    // for someone to come, the next in line.
    bool called = false, again = false;
    Executor* executor = nullptr;
    int number = 0;
    Worker* next = nullptr;
  };
  struct Count {
    std::atomic<uint32_t> left;  // how many it still waits for
    uint32_t waits_for;          // at the start of a run
  };
  struct Calls;
  static Calls& AllCalls();
  static void AnswerCall();

  void CallWorkers();
  void Enter(int worker);
  void Work(int worker, uint64_t entry);
  bool FindEntry(int worker, uint64_t* entry);
  bool Steal(int worker, uint64_t* entry);
  uint32_t Release(Worker& me, uint32_t begin, uint32_t end);
  void Share(Worker& me, uint64_t entry);

  const Schedule& schedule_;
  const int threads_;
  tbb::task_arena arena_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Count[]> counts_;  // by task
  const Body* body_ = nullptr;

  alignas(64) std::atomic<uint32_t> inside_{0};  // workers in the run besides the caller; kOpen while more may come
  std::atomic<bool> shared_{false};              // workers were called
  std::atomic<bool> done_{false};
};

}  // namespace weft

#endif  // WEFT_GRAPH_EXECUTOR_H_
