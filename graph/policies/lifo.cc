// Policy lifo: the task that became ready last runs first.
#include <vector>

#include "weft/graph/policies/policies.h"

namespace weft {
namespace {

class LifoQueue : public ReadyQueue {
 public:
  void Push(uint32_t task, int) override { tasks_.push_back(task); }
  std::optional<uint32_t> Pop(int) override {
    if (tasks_.empty()) return std::nullopt;
    const uint32_t task = tasks_.back();
    tasks_.pop_back();
    return task;
  }

 private:
  std::vector<uint32_t> tasks_;
};

}  // namespace

constexpr Policy kLifo = {
    .name = "lifo",
    .summary = "the task that became ready last",
    .queue = [](const Schedule*, int) -> std::unique_ptr<ReadyQueue> { return std::make_unique<LifoQueue>(); }};

}  // namespace weft
