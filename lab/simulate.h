// Simulate runs a schedule in simulated time: its tasks under a policy, with given costs, on any number of workers.
//
//   const Simulation simulation = Simulate(graph.compiled().schedule, costs, kCriticalPath, {.workers = 64});
//   std::printf("%.1f ms\n", simulation.makespan * 1e3);
#ifndef WEFT_LAB_SIMULATE_H_
#define WEFT_LAB_SIMULATE_H_

#include <vector>

#include "absl/types/span.h"
#include "weft/graph/policies/policies.h"
#include "weft/graph/schedule.h"
#include "weft/lab/simulated_workers.h"

namespace weft {

struct Simulation {
  double makespan = 0;     // seconds
  double busy = 0;         // sum of the times that workers spent on tasks, in seconds
  double utilization = 0;  // busy / (workers * makespan)
};

// Returns the figures of a simulated execution. `costs`: one for each task. `policy` must have a queue. A message takes
// no worker: it starts as soon as it is ready and takes the `seconds` of its cost. lab/ranks/simulate_ranks.h simulates
// the network instead.
Simulation Simulate(const Schedule& schedule, absl::Span<const TaskCost> costs, const Policy& policy,
                    const SimulatedMachine& machine);

// Returns the seconds of each cost.
std::vector<double> SecondsOf(absl::Span<const TaskCost> costs);

// Returns a lower bound, in seconds, of the simulated makespan of `schedule` on `machine` under any policy, even one
// that knows all costs. It is the largest of these:
//
// - The longest path. A task that n workers can share (Schedule::SharersOf) takes 1/n of its time there.
// - For any set of tasks: h + work / workers + q (Carlier, 1987). Each task of the set has a path of at least h seconds
//   before it, and a path of at least q seconds after it. For all tasks, this is all work divided by the workers.
// - The bytes of all tasks, divided by the bandwidth of the machine.
//
// `costs`: one for each task. Tasks of Schedule::ends_later take no worker.
double MakespanBound(const Schedule& schedule, absl::Span<const TaskCost> costs, const SimulatedMachine& machine);

}  // namespace weft

#endif  // WEFT_LAB_SIMULATE_H_
