// The simple policies: fifo, lifo and serial. All workers share one queue of ready tasks.
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "weft/graph/run/policies/policies.h"
#include "weft/graph/run/stealing_executor.h"

namespace weft {
namespace {

// Tasks in the order in which they became ready. Workers take the last task, or the first.
template <bool kLast>
class ListQueue : public ReadyQueue {
 public:
  void Push(uint32_t task, int) override { tasks_.push_back(task); }
  std::optional<uint32_t> Pop(int) override {
    if (tasks_.empty()) return std::nullopt;
    const uint32_t task = kLast ? tasks_.back() : tasks_.front();
    kLast ? tasks_.pop_back() : tasks_.pop_front();
    return task;
  }

 private:
  std::deque<uint32_t> tasks_;
};

// Worker 0 runs all tasks in ascending order of their numbers, which is a serial order.
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

template <class Queue>
std::unique_ptr<ReadyQueue> MakeQueue(const Schedule*, int) {
  return std::make_unique<Queue>();
}

}  // namespace

constexpr Policy kFifo = {
    .name = "fifo", .summary = "the task that became ready first", .queue = MakeQueue<ListQueue<false>>};
constexpr Policy kLifo = {
    .name = "lifo", .summary = "the task that became ready last", .queue = MakeQueue<ListQueue<true>>};
constexpr Policy kSerial = {.name = "serial",
                            .summary = "one worker, in the order of the program",
                            .queue = MakeQueue<SerialQueue>,
                            .executor = [](const Schedule* schedule, int) -> std::unique_ptr<Executor> {
                              return std::make_unique<StealingExecutor>(schedule, 1);
                            }};

}  // namespace weft
