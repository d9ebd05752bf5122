// Policies earliest-finish and earliest-finish-learned: a ready task goes to the worker that would finish it first, as
// in HEFT (Topcuoglu et al., 2002). A worker runs the task with the longest remaining path first.
#include <algorithm>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "weft/graph/run/policies/policies.h"

namespace weft {
namespace {

// A task is expected to take this many times longer on a worker other than the one that made it ready, because that
// worker's caches hold some of the task's inputs. The value is a guess that is large enough to break ties.
constexpr float kColdCaches = 1.1f;

// Each worker has a list of tasks, and is expected to be busy for the sum of their durations. A worker whose list is
// empty takes a task from the one that has most to do. Durations are those of the schedule. If the queue learns, each
// execution begins with the durations that the last execution measured, unless Forget has discarded them.
class EarliestFinishQueue : public ReadyQueue {
 public:
  EarliestFinishQueue(const Schedule* schedule, int workers, bool learns)
      : schedule_(*schedule),
        learns_(learns),
        order_(SerialOrder(*schedule)),
        seconds_(schedule->seconds),
        owner_(schedule->size(), 0),
        lists_(static_cast<size_t>(workers)),
        busy_(static_cast<size_t>(workers), 0) {
    LongestPaths(schedule_, order_, seconds_, &path_);
    if (learns) measured_.reserve(schedule->task_count);
  }

  void Push(uint32_t task, int worker) override {
    if (finished_ == 0 && !measured_.empty()) Learn();
    const size_t near = static_cast<size_t>(worker);
    size_t best = near;
    float earliest = busy_[near] + Load(task);
    for (size_t w = 0; w < busy_.size(); ++w) {
      const float finish = busy_[w] + kColdCaches * Load(task);
      if (finish >= earliest) continue;
      earliest = finish;
      best = w;
    }
    // A message comes first, because the network must not wait. Of equal paths, the first task comes first.
    const float path = schedule_.EndsLater(task) ? std::numeric_limits<float>::infinity() : path_[task];
    lists_[best].emplace(path, ~task);
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
    const uint32_t task = ~lists_[from].top().second;
    lists_[from].pop();
    busy_[from] -= Load(task);
    Give(task, static_cast<size_t>(worker));
    return task;
  }

  void Finish(uint32_t task, double seconds) override {
    busy_[owner_[task]] -= Load(task);
    if (learns_ && !schedule_.EndsLater(task)) measured_.emplace_back(task, static_cast<float>(seconds));
    if (++finished_ < schedule_.task_count) return;
    finished_ = 0;
    std::fill(busy_.begin(), busy_.end(), 0.0f);  // without the rounding errors of many sums
  }

  void Forget() override { measured_.clear(); }

 private:
  using List = std::priority_queue<std::pair<float, uint32_t>>;  // longest path that begins with the task, ~task

  // Returns the seconds for which `task` keeps a worker busy. A message keeps none.
  float Load(uint32_t task) const { return schedule_.EndsLater(task) ? 0 : seconds_[task]; }
  void Give(uint32_t task, size_t worker) {
    owner_[task] = static_cast<uint32_t>(worker);
    busy_[worker] += Load(task);
  }
  void Learn() {
    for (const auto& [task, took] : measured_) seconds_[task] = took;
    measured_.clear();
    LongestPaths(schedule_, order_, seconds_, &path_);
  }

  const Schedule& schedule_;
  const bool learns_;
  const std::vector<uint32_t> order_;
  std::vector<float> seconds_, path_;                 // by task: its duration; the longest path that begins with it
  std::vector<uint32_t> owner_;                       // by task: the worker that has it
  std::vector<List> lists_;                           // by worker
  std::vector<float> busy_;                           // by worker: seconds of its listed and running tasks
  size_t ready_ = 0;                                  // tasks in all lists
  uint32_t finished_ = 0;                             // tasks of this execution
  std::vector<std::pair<uint32_t, float>> measured_;  // tasks and durations of this or the last execution
};

template <bool kLearns>
std::unique_ptr<ReadyQueue> MakeQueue(const Schedule* schedule, int workers) {
  return std::make_unique<EarliestFinishQueue>(schedule, workers, kLearns);
}

}  // namespace

constexpr Policy kEarliestFinish = {.name = "earliest-finish",
                                    .summary = "each task goes to the worker that would finish it first",
                                    .queue = MakeQueue<false>};

constexpr Policy kEarliestFinishLearned = {.name = "earliest-finish-learned",
                                           .summary = "the same, by the times of the last execution",
                                           .queue = MakeQueue<true>,
                                           .learns = true};

}  // namespace weft
