// An Executor runs each task of a schedule once, after all of its predecessors. graph/run/policies/policies.h makes
// executors.
//
//   executor->Run([&](TaskPart part, int worker) { ... });
#ifndef WEFT_GRAPH_RUN_EXECUTOR_H_
#define WEFT_GRAPH_RUN_EXECUTOR_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "weft/base/status.h"

namespace weft {

// Parts `begin` .. `end` - 1 of a task. A task that is not divisible has one part.
struct TaskPart {
  uint32_t task = 0, begin = 0, end = 1;
};

class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  // Body runs one task, or some parts of a divisible task, on one worker. It is also called for joins that
  // ScheduleBuilder::AddTask added, but not for joins that Build inserted.
  using Body = absl::FunctionRef<void(TaskPart part, int worker)>;
  // Calls `body` for ranges that together hold each part of each task once, and returns after all tasks have ended.
  // Workers are numbered 0 .. threads() - 1. No two calls of `body` at the same time have the same number, except calls
  // for tasks in Schedule::ends_later. Calls of Run must not overlap.
  virtual void Run(Body body) = 0;
  // Ends a task of Schedule::ends_later. The call of the task's body must have begun. Any thread may call End, but
  // calls must not overlap. The default implementation is for executors that run no such tasks.
  virtual void End(uint32_t /*task*/) { WEFT_CHECK(false && "this executor runs no tasks that end later"); }

  // Discards the durations of the last execution, so that policies that learn don't use them. Callers of Run call it if
  // the tasks did not do their work, because the execution was cancelled.
  virtual void Forget() {}

  virtual int threads() const = 0;
  // Returns how many workers took part in the last call of Run, including the caller.
  virtual int workers_entered() const = 0;
  // Returns how often workers stole from each other in the last call of Run. A worker steals one task, a slice of the
  // successors of a task, or half of the parts that another worker has left. Returns nullopt if the executor does not
  // steal.
  virtual std::optional<uint64_t> steals() const { return std::nullopt; }
};

// A ReadyQueue holds the tasks that are ready but not begun. The queue of a policy decides which of them a worker runs
// next. Only one thread uses a queue at a time. The queue is empty before and after an execution.
class ReadyQueue {
 public:
  virtual ~ReadyQueue() = default;

  // Adds `task`, which became ready when `worker` finished another task; at the start of an execution, `worker` is 0.
  // Successors of one task that become ready together are pushed one after the other, the most critical one last.
  virtual void Push(uint32_t task, int worker) = 0;
  // Removes and returns the next task of `worker`. If the worker has to wait, returns nullopt.
  virtual std::optional<uint32_t> Pop(int worker) = 0;
  // Records that `task` has ended. `seconds`: the duration of its body. It is meaningful only if Policy::learns is set
  // and the task is not in Schedule::ends_later. The tasks that it made ready are pushed after this call.
  virtual void Finish(uint32_t /*task*/, double /*seconds*/) {}
  // Discards the durations of the last execution, whose tasks did not do their work.
  virtual void Forget() {}
};

}  // namespace weft

#endif  // WEFT_GRAPH_RUN_EXECUTOR_H_
