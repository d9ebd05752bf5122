// What is ready to run and not begun: a policy decides which of it comes next.
#ifndef WEFT_GRAPH_READY_QUEUE_H_
#define WEFT_GRAPH_READY_QUEUE_H_

#include <cstdint>
#include <optional>

namespace weft {

// Used by one thread at a time. Empty before a run and after it.
class ReadyQueue {
 public:
  virtual ~ReadyQueue() = default;

  // `task` became ready when `worker` finished another one; at the start that is worker 0. Those that become ready
  // together come one after the other, the most critical last.
  virtual void Push(uint32_t task, int worker) = 0;
  // What `worker` runs next; nothing if it has to wait.
  virtual std::optional<uint32_t> Pop(int worker) = 0;
  // `task` has run; what became ready by that is pushed after it.
  virtual void Finish(uint32_t task) { static_cast<void>(task); }
};

}  // namespace weft

#endif  // WEFT_GRAPH_READY_QUEUE_H_
