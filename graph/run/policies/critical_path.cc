// Policies critical-path and critical-path-measured: of tasks that become ready together, a worker first takes the one
// with the longest remaining path. Idle workers steal the oldest task of another. StealingExecutor runs these policies.
// The queue here follows the same rules, for simulations and other executors.
#include <deque>
#include <vector>

#include "weft/graph/run/policies/policies.h"
#include "weft/graph/run/stealing_executor.h"

namespace weft {
namespace {

// Each worker has a deque, and takes the latest task of its own deque. Of tasks that became ready together, the most
// critical one was pushed last. If its deque is empty, a worker takes the oldest task of another deque.
class StealingQueue : public ReadyQueue {
 public:
  explicit StealingQueue(int workers) : deques_(static_cast<size_t>(workers)) {}

  void Push(uint32_t task, int worker) override {
    deques_[static_cast<size_t>(worker)].push_back(task);
    ++ready_;
  }
  std::optional<uint32_t> Pop(int worker) override {
    if (ready_ == 0) return std::nullopt;
    --ready_;
    for (size_t i = static_cast<size_t>(worker);; ++i) {
      std::deque<uint32_t>& tasks = deques_[i % deques_.size()];
      if (tasks.empty()) continue;
      const bool own = i == static_cast<size_t>(worker);
      const uint32_t task = own ? tasks.back() : tasks.front();
      own ? tasks.pop_back() : tasks.pop_front();
      return task;
    }
  }

 private:
  std::vector<std::deque<uint32_t>> deques_;  // by worker
  size_t ready_ = 0;                          // in all of them
};

std::unique_ptr<ReadyQueue> MakeQueue(const Schedule*, int workers) { return std::make_unique<StealingQueue>(workers); }
std::unique_ptr<Executor> MakeStealing(const Schedule* schedule, int threads) {
  return std::make_unique<StealingExecutor>(schedule, threads);
}

}  // namespace

constexpr Policy kCriticalPath = {
    .name = "critical-path",
    .summary = "the task with the longest remaining path, by the cost model; idle workers steal",
    .queue = MakeQueue,
    .executor = MakeStealing,
    .shares = true};

constexpr Policy kCriticalPathMeasured = {.name = "critical-path-measured",
                                          .summary = "the same, by measured times",
                                          .queue = MakeQueue,
                                          .executor = MakeStealing,
                                          .shares = true,
                                          .measured = true};

}  // namespace weft
