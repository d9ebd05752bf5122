#include <algorithm>
#include <vector>

#include "weft/graph/policies/policies.h"

namespace weft {
namespace {

// A task's level is the number of tasks on the longest path that ends before it. None begins before all of the levels
// before its own are done.
class Level : public ReadyQueue {
 public:
  explicit Level(const Schedule* schedule) : level_(schedule->size()), tasks_(1) {
    for (uint32_t task : SerialOrder(*schedule)) {
      const bool counts = task < schedule->task_count;
      if (counts) {
        if (tasks_.size() <= level_[task]) tasks_.resize(level_[task] + 1);
        ++tasks_[level_[task]];
      }
      for (uint32_t i = schedule->first_successor[task]; i < schedule->first_successor[task + 1]; ++i) {
        uint32_t& after = level_[schedule->successors[i] & ~Schedule::kAlone];
        after = std::max(after, level_[task] + (counts ? 1 : 0));
      }
    }
    ready_.resize(tasks_.size());
    left_ = tasks_;
  }

  void Push(uint32_t task, int) override { ready_[level_[task]].push_back(task); }
  std::optional<uint32_t> Pop(int) override {
    if (ready_[now_].empty()) return std::nullopt;
    const uint32_t task = ready_[now_].back();
    ready_[now_].pop_back();
    return task;
  }
  void Finish(uint32_t task) override {
    if (--left_[level_[task]] > 0) return;
    left_[now_] = tasks_[now_];  // for the next run
    now_ = now_ + 1 < tasks_.size() ? now_ + 1 : 0;
  }

 private:
  std::vector<uint32_t> level_;               // by task
  std::vector<uint32_t> tasks_, left_;        // by level: how many there are, and of this run
  std::vector<std::vector<uint32_t>> ready_;  // by level
  uint32_t now_ = 0;
};

}  // namespace

constexpr Policy kLevel = {.name = "level",
                           .summary = "one level after the other, with a barrier after each",
                           .queue = [](const Schedule* schedule, int) -> std::unique_ptr<ReadyQueue> {
                             return std::make_unique<Level>(schedule);
                           }};

}  // namespace weft
