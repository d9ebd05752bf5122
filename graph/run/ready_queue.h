// A ReadyQueue holds the tasks that are ready but not begun. The queue of a policy decides which of them a worker runs
// next.
#ifndef WEFT_GRAPH_RUN_READY_QUEUE_H_
#define WEFT_GRAPH_RUN_READY_QUEUE_H_

#include <cstdint>
#include <optional>

namespace weft {

// Only one thread uses a queue at a time. The queue is empty before and after an execution.
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

#endif  // WEFT_GRAPH_RUN_READY_QUEUE_H_
