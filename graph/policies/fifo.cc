// Policy fifo: the task that became ready first runs first.
#include <deque>

#include "weft/graph/policies/policies.h"

namespace weft {
namespace {

class FifoQueue : public ReadyQueue {
 public:
  void Push(uint32_t task, int) override { tasks_.push_back(task); }
  std::optional<uint32_t> Pop(int) override {
    if (tasks_.empty()) return std::nullopt;
    const uint32_t task = tasks_.front();
    tasks_.pop_front();
    return task;
  }

 private:
  std::deque<uint32_t> tasks_;
};

}  // namespace

constexpr Policy kFifo = {
    .name = "fifo",
    .summary = "the task that became ready first",
    .queue = [](const Schedule*, int) -> std::unique_ptr<ReadyQueue> { return std::make_unique<FifoQueue>(); }};

}  // namespace weft
