// The list of all policies, and the simple ones: fifo, lifo, serial and level, whose workers share one queue of ready
// tasks.
#include "weft/graph/run/policies/policies.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>

#include "absl/algorithm/container.h"
#include "weft/graph/run/queue_executor.h"
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

// The level of a task is the number of tasks on the longest path that ends just before it. A task begins only when all
// tasks of lower levels are done.
class LevelQueue : public ReadyQueue {
 public:
  explicit LevelQueue(const Schedule* schedule) : level_(schedule->size()), tasks_(1) {
    for (uint32_t task : SerialOrder(*schedule)) {
      const bool is_task = task < schedule->task_count;
      if (is_task) {
        if (tasks_.size() <= level_[task]) tasks_.resize(level_[task] + 1);
        ++tasks_[level_[task]];
      }
      const uint32_t after = level_[task] + (is_task ? 1 : 0);
      schedule->ForEachSuccessor(task, [&](uint32_t next) { level_[next] = std::max(level_[next], after); });
    }
    ready_.resize(tasks_.size());
    left_ = tasks_;
  }

  void Push(uint32_t task, int) override { ready_[level_[task]].push_back(task); }
  std::optional<uint32_t> Pop(int) override {
    if (ready_[current_].empty()) return std::nullopt;
    const uint32_t task = ready_[current_].back();
    ready_[current_].pop_back();
    return task;
  }
  void Finish(uint32_t task, double) override {
    --left_[level_[task]];
    while (left_[current_] == 0) {         // messages of later levels may have ended before
      left_[current_] = tasks_[current_];  // for the next execution
      current_ = current_ + 1 < tasks_.size() ? current_ + 1 : 0;
    }
  }

 private:
  std::vector<uint32_t> level_;               // by task
  std::vector<uint32_t> tasks_, left_;        // by level: all tasks, and those left in this execution
  std::vector<std::vector<uint32_t>> ready_;  // by level
  uint32_t current_ = 0;                      // level
};

template <class Queue>
std::unique_ptr<ReadyQueue> MakeQueue(const Schedule*, int) {
  return std::make_unique<Queue>();
}

// In the order in which commands and benchmarks show them.
constexpr const Policy* kPolicies[] = {&kSerial,         &kFifo,
                                       &kLifo,           &kLevel,
                                       &kCriticalPath,   &kCriticalPathMeasured,
                                       &kEarliestFinish, &kEarliestFinishLearned};

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
constexpr Policy kLevel = {.name = "level",
                           .summary = "one level after the other, with a barrier after each",
                           .queue = [](const Schedule* schedule, int) -> std::unique_ptr<ReadyQueue> {
                             return std::make_unique<LevelQueue>(schedule);
                           }};

absl::Span<const Policy* const> Policies() { return kPolicies; }

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const Policy* policy : kPolicies) names.push_back(policy->name);
  return names;
}

const Policy* FindPolicy(absl::string_view name) {
  const auto it = absl::c_find_if(kPolicies, [&](auto* p) { return p->name == name; });
  return it == std::end(kPolicies) ? nullptr : *it;
}

std::unique_ptr<Executor> MakeExecutor(const Policy& policy, const Schedule* schedule, int threads) {
  if (policy.executor != nullptr) return policy.executor(schedule, threads);
  return std::make_unique<QueueExecutor>(schedule, threads, policy.queue(schedule, threads), policy.learns);
}

}  // namespace weft
