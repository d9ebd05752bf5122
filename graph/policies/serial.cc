// Policy serial: worker 0 runs all tasks in ascending order of their numbers, which is a serial order.
#include <functional>
#include <queue>
#include <vector>

#include "weft/graph/policies/policies.h"
#include "weft/graph/stealing_executor.h"

namespace weft {
namespace {

class SerialQueue : public ReadyQueue {
 public:
  void Push(uint32_t task, int) override { tasks_.push(task); }
  std::optional<uint32_t> Pop(int worker) override {
    if (tasks_.empty() || worker != 0) return std::nullopt;
    const uint32_t task = tasks_.top();
    tasks_.pop();
    return task;
  }

 private:
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> tasks_;
};

}  // namespace

constexpr Policy kSerial = {
    .name = "serial",
    .summary = "one worker, in the order of the program",
    .queue = [](const Schedule*, int) -> std::unique_ptr<ReadyQueue> { return std::make_unique<SerialQueue>(); },
    .executor = [](const Schedule* schedule, int) -> std::unique_ptr<Executor> {
      return std::make_unique<StealingExecutor>(schedule, 1);
    }};

}  // namespace weft
