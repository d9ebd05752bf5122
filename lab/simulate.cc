// Simulates from event to event. Idle workers take tasks from the policy's queue; then time advances until the first
// running task ends. All rates are constant between two events.
#include "weft/lab/simulate.h"

#include <algorithm>
#include <optional>

#include "weft/core/status.h"
#include "weft/graph/queue_executor.h"

namespace weft {
namespace {

// The task that a worker runs.
struct Running {
  std::optional<uint32_t> task;
  double left = 0;    // remaining seconds if no other task used the memory
  double memory = 0;  // fraction of the task's time in which it waits for memory

  double Stretch(double longer) const { return 1 + memory * (longer - 1); }
};

// Returns the factor, at least 1, by which each running task's waiting for memory becomes longer. With this factor, all
// running tasks together use at most the machine's bandwidth.
double Waiting(const std::vector<Running>& workers, const SimulatedMachine& machine) {
  double longer = 1;
  for (int round = 0; round < 50; ++round) {  // Newton's method: the demand is convex and falls with `longer`
    double wanted = 0, slope = 0;
    for (const Running& worker : workers) {
      if (!worker.task || worker.memory == 0) continue;
      const double stretch = worker.Stretch(longer), bytes = worker.memory * machine.worker_bandwidth / stretch;
      wanted += bytes;
      slope += bytes * worker.memory / stretch;
    }
    if (wanted <= machine.bandwidth * (1 + 1e-9)) break;
    longer += (wanted - machine.bandwidth) / slope;
  }
  return longer;
}

}  // namespace

Simulation Simulate(const Schedule& schedule, absl::Span<const TaskCost> costs, const Policy& policy,
                    const SimulatedMachine& machine) {
  WEFT_CHECK(costs.size() == schedule.task_count && policy.queue != nullptr && machine.workers >= 1);
  const std::unique_ptr<ReadyQueue> queue = policy.queue(&schedule, machine.workers);
  ReadyCounts counts(&schedule);
  std::vector<Running> workers(static_cast<size_t>(machine.workers));
  Simulation result;
  for (bool done = counts.Finish(schedule.start(), 0, queue.get()); !done;) {
    for (size_t w = 0; w < workers.size(); ++w) {
      Running& worker = workers[w];
      if (!worker.task && (worker.task = queue->Pop(static_cast<int>(w)))) {
        const TaskCost& cost = costs[*worker.task];
        worker.left = cost.seconds + machine.task_seconds;
        worker.memory = std::min(1.0, cost.bytes / (machine.worker_bandwidth * worker.left));
      }
    }
    const double longer = Waiting(workers, machine);
    double interval = std::numeric_limits<double>::infinity();  // until the first running task ends
    for (const Running& worker : workers) {
      if (worker.task) interval = std::min(interval, worker.left * worker.Stretch(longer));
    }
    WEFT_CHECK(interval < std::numeric_limits<double>::infinity());  // else the policy holds back every ready task
    result.makespan += interval;
    for (size_t w = 0; w < workers.size(); ++w) {
      Running& worker = workers[w];
      if (!worker.task) continue;
      result.busy += interval;
      worker.left -= interval / worker.Stretch(longer);
      if (worker.left > 1e-12) continue;
      const uint32_t task = *worker.task;
      worker.task.reset();
      queue->Finish(task);
      done |= counts.Finish(task, static_cast<int>(w), queue.get());
    }
  }
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
