// Schedule: tasks and what waits for what, in flat arrays that the executor walks.
//
//   ScheduleBuilder builder;
//   const uint32_t a = builder.AddTask(/*seconds=*/1e-6), b = builder.AddTask(2e-6);
//   builder.AddEdge(a, b);  // b waits for a
//   const Schedule schedule = std::move(builder).Build();
#ifndef WEFT_GRAPH_SCHEDULE_H_
#define WEFT_GRAPH_SCHEDULE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// Tasks 0 .. task_count - 1 are those that were added, in an order that respects the edges. Those from there on are
// joins: they do nothing but wait, so that no task waits for very many. The one called `end` waits for everything.
struct Schedule {
  uint32_t task_count = 0;
  uint32_t end = 0;
  std::vector<uint32_t> waits_for;  // by task: how many others, or 1 for the start
  // By task, and then for the start: where its slice of `successors` begins; and the end of the last slice. A slice is
  // in the order of rising length of the longest path that hangs on a task.
  std::vector<uint32_t> first_successor;
  std::vector<uint32_t> successors;  // tasks, with kAlone set on one that waits for no other
  static constexpr uint32_t kAlone = 0x80000000;

  uint32_t size() const { return static_cast<uint32_t>(waits_for.size()); }
  uint32_t start() const { return size(); }  // the index in first_successor of what waits for nothing
};

// All tasks and joins, each after those that it waits for.
std::vector<uint32_t> SerialOrder(const Schedule& schedule);
// The same schedule for tasks that take so many seconds: what is most critical is found anew.
Schedule WithSeconds(Schedule schedule, absl::Span<const double> seconds);

class ScheduleBuilder {
 public:
  uint32_t AddTask(double seconds);
  // `before` must be older than `after`. The same edge twice is one.
  void AddEdge(uint32_t before, uint32_t after);

  Schedule Build() &&;

 private:
  std::vector<float> seconds_;
  std::vector<std::pair<uint32_t, uint32_t>> edges_;
};

}  // namespace weft

#endif  // WEFT_GRAPH_SCHEDULE_H_
