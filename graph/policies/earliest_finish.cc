// Policies earliest-finish and earliest-finish-learned: a ready task goes to the worker that would finish it first, as
// in HEFT (Topcuoglu et al., 2002). A worker runs the task with the longest remaining path first.
#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "weft/graph/policies/policies.h"

namespace weft {
namespace {

// A task is expected to take this much longer on another worker than on the one that finished its last predecessor,
// whose caches hold some of the task's inputs.
constexpr float kColdCaches = 1.1f;

// Each worker has a list of tasks, and is expected to be busy for the sum of their durations. A worker whose list is
// empty takes a task from the one that has most to do. Durations are those of the schedule. If the queue learns, they
// become the measured ones after each execution.
class EarliestFinishQueue : public ReadyQueue {
 public:
  EarliestFinishQueue(const Schedule* schedule, int workers, bool learns)
      : schedule_(*schedule),
        learns_(learns),
        seconds_(schedule->seconds),
        path_(LongestPaths(*schedule, seconds_)),
        owner_(schedule->size(), 0),
        lists_(static_cast<size_t>(workers)),
        busy_(static_cast<size_t>(workers), 0) {}

  bool learns() const override { return learns_; }

  void Push(uint32_t task, int worker) override {
    const size_t near = static_cast<size_t>(worker);
    size_t best = near;
    float earliest = busy_[near] + seconds_[task];
    for (size_t w = 0; w < busy_.size(); ++w) {
      const float finish = busy_[w] + kColdCaches * seconds_[task];
      if (finish >= earliest) continue;
      earliest = finish;
      best = w;
    }
    lists_[best].emplace(path_[task], task);
    Give(task, best);
    ++ready_;
  }

  std::optional<uint32_t> Pop(int worker) override {
    if (ready_ == 0) return std::nullopt;
    --ready_;
    size_t from = static_cast<size_t>(worker);
    if (lists_[from].empty()) {
      for (size_t w = 0; w < lists_.size(); ++w) {
        if (!lists_[w].empty() && (lists_[from].empty() || busy_[w] > busy_[from])) from = w;
      }
    }
    const uint32_t task = lists_[from].top().second;
    lists_[from].pop();
    busy_[from] -= seconds_[task];
    Give(task, static_cast<size_t>(worker));
    return task;
  }

  void Finish(uint32_t task, double seconds) override {
    if (!schedule_.EndsLater(task)) {
      busy_[owner_[task]] -= seconds_[task];
      if (learns_) measured_.emplace_back(task, static_cast<float>(seconds));
    }
    if (++finished_ < schedule_.task_count) return;
    finished_ = 0;
    std::fill(busy_.begin(), busy_.end(), 0.0f);  // without the rounding errors of many sums
    if (!learns_) return;
    for (const auto& [ran, took] : measured_) seconds_[ran] = took;
    measured_.clear();
    path_ = LongestPaths(schedule_, seconds_);
  }

 private:
  using List = std::priority_queue<std::pair<float, uint32_t>>;  // longest path that begins with the task, task

  void Give(uint32_t task, size_t worker) {
    owner_[task] = static_cast<uint32_t>(worker);
    busy_[worker] += seconds_[task];
  }

  const Schedule& schedule_;
  const bool learns_;
  std::vector<float> seconds_, path_;  // by task: its duration; the longest path that begins with it
  std::vector<uint32_t> owner_;        // by task: the worker that has it
  std::vector<List> lists_;            // by worker
  std::vector<float> busy_;            // by worker: seconds of its listed and running tasks
  size_t ready_ = 0;                   // tasks in all lists
  uint32_t finished_ = 0;              // tasks of this execution
  std::vector<std::pair<uint32_t, float>> measured_;
};

}  // namespace

constexpr Policy kEarliestFinish = {.name = "earliest-finish",
                                    .summary = "each task goes to the worker that would finish it first",
                                    .queue = [](const Schedule* schedule, int workers) -> std::unique_ptr<ReadyQueue> {
                                      return std::make_unique<EarliestFinishQueue>(schedule, workers, /*learns=*/false);
                                    }};

constexpr Policy kEarliestFinishLearned = {
    .name = "earliest-finish-learned",
    .summary = "the same, by the times of the last execution",
    .queue = [](const Schedule* schedule, int workers) -> std::unique_ptr<ReadyQueue> {
      return std::make_unique<EarliestFinishQueue>(schedule, workers, /*learns=*/true);
    },
    .learns = true};

}  // namespace weft
