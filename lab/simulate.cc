// Simulates from event to event: time advances until the first running task or message ends.
#include "weft/lab/simulate.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "weft/core/status.h"

namespace weft {
Simulation Simulate(const Schedule& schedule, absl::Span<const TaskCost> costs, const Policy& policy,
                    const SimulatedMachine& machine) {
  SimulatedWorkers workers(&schedule, costs, policy, machine);
  using Ending = std::pair<double, uint32_t>;  // end of a message, task
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> messages;
  Simulation result;
  while (!workers.done()) {
    for (const uint32_t task : workers.TakeMessages()) messages.emplace(result.makespan + costs[task].seconds, task);
    workers.Begin();
    double interval = workers.UntilNextEnd();
    if (!messages.empty()) interval = std::min(interval, std::max(0.0, messages.top().first - result.makespan));
    WEFT_CHECK(interval < std::numeric_limits<double>::infinity());  // else the policy holds back every ready task
    result.makespan += interval;
    workers.Advance(interval);
    for (; !messages.empty() && messages.top().first <= result.makespan; messages.pop()) {
      workers.EndMessage(messages.top().second);
    }
  }
  result.busy = workers.busy();
  if (result.makespan > 0) result.utilization = result.busy / (machine.workers * result.makespan);
  return result;
}

CriticalPath FindCriticalPath(const Schedule& schedule, absl::Span<const TaskCost> costs) {
  constexpr uint32_t kNone = 0xffffffff;
  std::vector<double> begin(schedule.size(), 0);         // by task: the earliest start
  std::vector<uint32_t> before(schedule.size(), kNone);  // by task: the predecessor that ends last
  CriticalPath path;
  uint32_t last = kNone;
  for (uint32_t task : SerialOrder(schedule)) {
    const double done = begin[task] + (task < schedule.task_count ? costs[task].seconds : 0);
    if (done > path.seconds) {
      path.seconds = done;
      last = task;
    }
    for (uint32_t i = schedule.first_successor[task]; i < schedule.first_successor[task + 1]; ++i) {
      const uint32_t next = schedule.successors[i] & ~Schedule::kAlone;
      if (done <= begin[next]) continue;
      begin[next] = done;
      before[next] = task;
    }
  }
  for (; last != kNone; last = before[last]) {
    if (last < schedule.task_count) path.tasks.push_back(last);
  }
  std::reverse(path.tasks.begin(), path.tasks.end());
  return path;
}

}  // namespace weft
