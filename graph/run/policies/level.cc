// Policy level: tasks run level by level, with a barrier after each level.
#include <algorithm>
#include <vector>

#include "weft/graph/run/policies/policies.h"

namespace weft {
namespace {

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
      for (uint32_t i = schedule->first_successor[task]; i < schedule->first_successor[task + 1]; ++i) {
        uint32_t& after = level_[schedule->successors[i] & ~Schedule::kAlone];
        after = std::max(after, level_[task] + (is_task ? 1 : 0));
      }
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

}  // namespace

constexpr Policy kLevel = {.name = "level",
                           .summary = "one level after the other, with a barrier after each",
                           .queue = [](const Schedule* schedule, int) -> std::unique_ptr<ReadyQueue> {
                             return std::make_unique<LevelQueue>(schedule);
                           }};

}  // namespace weft
