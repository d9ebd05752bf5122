// What a schedule would take on another number of workers: a simulation of the same tasks under the same policy.
//
//   const Simulation run = Simulate(graph.compiled().schedule, costs, kCriticalPath, {.workers = 64});
//   std::printf("%.1f ms\n", run.makespan * 1e3);
#ifndef WEFT_LAB_SIMULATE_H_
#define WEFT_LAB_SIMULATE_H_

#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "weft/graph/policies/policies.h"
#include "weft/graph/schedule.h"

namespace weft {

struct TaskCost {
  double seconds = 0;  // alone on one worker
  double bytes = 0;    // that it reads from memory or writes to it
};

struct SimulatedMachine {
  int workers = 1;
  double task_seconds = 0.1e-6;  // to begin a task
  // Bytes a second, of one worker and of all together. What all want above that makes each wait for its bytes longer.
  double worker_bandwidth = std::numeric_limits<double>::infinity();
  double bandwidth = std::numeric_limits<double>::infinity();
};

struct Simulation {
  double makespan = 0;  // seconds
  double busy = 0;      // seconds that workers were at tasks, together
  double utilization = 0;
};

// `costs` has one for each task; the policy is one that has a queue.
Simulation Simulate(const Schedule& schedule, absl::Span<const TaskCost> costs, const Policy& policy,
                    const SimulatedMachine& machine);

// What no number of workers and no policy goes below: the tasks of the longest path of those that wait for each other.
struct CriticalPath {
  double seconds = 0;
  std::vector<uint32_t> tasks;  // in their order
};
CriticalPath FindCriticalPath(const Schedule& schedule, absl::Span<const TaskCost> costs);

}  // namespace weft

#endif  // WEFT_LAB_SIMULATE_H_
