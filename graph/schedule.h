// A Schedule holds tasks and their dependencies in flat arrays, which executors walk.
//
//   ScheduleBuilder builder;
//   const uint32_t a = builder.AddTask(/*seconds=*/1e-6), b = builder.AddTask(2e-6);
//   builder.AddEdge(a, b);  // b waits for a
//   const Schedule schedule = std::move(builder).Build();
#ifndef WEFT_GRAPH_SCHEDULE_H_
#define WEFT_GRAPH_SCHEDULE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// Tasks 0 .. task_count - 1 are those that were added, each after its predecessors. Tasks with higher numbers are
// joins, which only wait: they bound the number of predecessors of each task. The join `end` waits for everything.
struct Schedule {
  uint32_t task_count = 0;
  uint32_t end = 0;
  std::vector<uint32_t> waits_for;  // by task: its number of predecessors; 1, the start, if it has none
  // Slice t of `successors`, [first_successor[t], first_successor[t + 1]), has the successors of task t. The last
  // slice, of start(), has the tasks without predecessors. Each slice is in ascending order of the longest path that
  // begins with the successor. Tasks that messages wait for come last, so that a worker runs them first: otherwise the
  // network would wait behind longer paths.
  std::vector<uint32_t> first_successor;
  std::vector<uint32_t> successors;  // tasks; kAlone is set if the task has no other predecessor
  static constexpr uint32_t kAlone = 0x80000000;
  std::vector<float> seconds;  // by task: its expected duration; joins have none
  // By task: whether the task continues after its body has returned, until a call of Executor::End. Empty: none does.
  std::vector<bool> ends_later;

  // By task: the number of its parts, which several workers may run at the same time; 1 for tasks beyond the last
  // entry.
  std::vector<uint16_t> parts;
  // With fewer workers, tasks are not divided: their small products cost more than the time that workers wait. On two
  // cores, divided steps of gpt2 take 1.13 times as long in f32 and 1.28 times in bf16.
  static constexpr int kMinDividing = 8;

  uint32_t size() const { return static_cast<uint32_t>(waits_for.size()); }
  bool EndsLater(uint32_t task) const { return task < ends_later.size() && ends_later[task]; }
  uint32_t PartsOf(uint32_t task) const { return task < parts.size() ? parts[task] : 1; }
  // Returns the maximum number of `workers` that run the task at the same time.
  uint32_t SharersOf(uint32_t task, int workers) const {
    return workers < kMinDividing ? 1 : std::min(PartsOf(task), static_cast<uint32_t>(workers));
  }
  uint32_t start() const { return size(); }  // index in first_successor of tasks without predecessors
  // Calls visit(next) for each successor of a task or join, or of start(), in the order of `successors`.
  template <class Visit>
  void ForEachSuccessor(uint32_t task, Visit visit) const {
    for (uint32_t i = first_successor[task]; i < first_successor[task + 1]; ++i) visit(successors[i] & ~kAlone);
  }
};

// Returns all tasks and joins, each after its predecessors.
std::vector<uint32_t> SerialOrder(const Schedule& schedule);
// Sets `length` to the seconds of the longest path that begins with each task or join. `order`: that of SerialOrder.
// `seconds`: durations of tasks.
void LongestPaths(const Schedule& schedule, absl::Span<const uint32_t> order, absl::Span<const float> seconds,
                  std::vector<float>* length);

// The longest path in the graph of tasks. A path is a sequence in which each task waits for the previous task. The time
// of the longest path is a lower bound of an execution's time, for any policy and up to `workers` workers.
struct CriticalPath {
  double seconds = 0;
  std::vector<uint32_t> tasks;  // in the order in which they run
};
// `seconds`: the duration of each task on one worker. A task that n workers can share takes 1/n of its seconds.
CriticalPath FindCriticalPath(const Schedule& schedule, absl::Span<const double> seconds,
                              int workers = std::numeric_limits<int>::max());

// Returns `schedule` with the durations `seconds`, at least 0, and with the successors of each task sorted anew.
Schedule WithSeconds(Schedule schedule, absl::Span<const double> seconds);

class ScheduleBuilder {
 public:
  // Adds a task that takes `seconds`, at least 0, and returns its number. `ends_later`: whether it is one of
  // Schedule::ends_later. `parts`: how many parts it has.
  uint32_t AddTask(double seconds, bool ends_later = false, uint16_t parts = 1);
  // Makes `after` wait for `before`, which must have been added earlier. Adding an edge again has no effect.
  void AddEdge(uint32_t before, uint32_t after);

  Schedule Build() &&;

 private:
  Schedule schedule_;                           // with the fields that describe tasks, and without joins and edges
  std::vector<std::array<uint32_t, 2>> edges_;  // (before, after)
};

}  // namespace weft

#endif  // WEFT_GRAPH_SCHEDULE_H_
