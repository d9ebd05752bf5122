// Simulate runs a schedule in simulated time: its tasks under a policy, with given costs, on any number of workers.
// SimulateRanks runs the schedules of several ranks, with the messages between them.
//
//   const Simulation simulation = Simulate(graph.compiled().schedule, costs, kCriticalPath, {.workers = 64});
//   std::printf("%.1f ms\n", simulation.makespan * 1e3);
//
//   const SimulatedRank rank = {.rank = 0, .schedule = &schedule, .costs = costs, .messages = MessagesOf(graph)};
//   const Simulation of_ranks = SimulateRanks({rank}, network, kCriticalPath, {.workers = 2});
#ifndef WEFT_LAB_SIMULATE_H_
#define WEFT_LAB_SIMULATE_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/graph/schedule.h"
#include "weft/lab/network.h"

namespace weft {

struct TaskCost {
  double seconds = 0;  // duration if no other task used the memory
  double bytes = 0;    // bytes read from memory or written to it
  double cached = 0;   // bytes of inputs that its predecessors wrote and that lie in a cache, of whichever worker
};
// Returns the seconds of each cost.
std::vector<double> SecondsOf(absl::Span<const TaskCost> costs);

struct SimulatedMachine {
  int workers = 1;
  double task_seconds = 0.1e-6;  // overhead of starting a task
  // Maximum bytes per second of one worker, and of all workers together. If the running tasks need more, each of them
  // waits longer for memory.
  double worker_bandwidth = std::numeric_limits<double>::infinity();
  double bandwidth = std::numeric_limits<double>::infinity();
  double wake_seconds = 0;  // until workers other than the first one take tasks
  // Factors on the time of computing, for 1, 2, ... running workers, since cores share their clock. The last one holds
  // for more workers. Empty: 1.
  std::vector<double> slowdowns = {};
  // Additional time of a task for each byte of TaskCost::cached that another worker wrote. These bytes are divided
  // evenly among the task's predecessors, those that wrote none of its inputs among them.
  double moved_byte_seconds = 0;
};

struct RankMessage {
  uint32_t task = 0;
  bool sends = false;
  int peer = 0, tag = 0;
  double bytes = 0;
};

struct SimulatedRank {
  int rank = 0;
  const Schedule* schedule = nullptr;
  std::vector<TaskCost> costs;  // by task; the costs of `messages` have no effect
  // At most one for each direction, peer and tag. Other tasks of Schedule::ends_later start as soon as they are ready,
  // and take the `seconds` of their costs.
  std::vector<RankMessage> messages = {};
};

struct Simulation {
  double makespan = 0;     // seconds until the last rank has ended
  double busy = 0;         // sum of the times that workers spent on tasks, in seconds
  double utilization = 0;  // busy / (all workers * makespan)
  // Two figures of the rank that ends last. `communication`: seconds in which at least one of its messages was under
  // way. `hidden`: the seconds of `communication` in which a worker of the rank ran a task. A message is under way from
  // its start, which may be before the other rank is ready, to its end.
  double communication = 0, hidden = 0;
};

// Returns the figures of a simulated execution. `costs`: one for each task. `policy` must have a queue. A message takes
// no worker: it starts as soon as it is ready and takes the `seconds` of its cost.
Simulation Simulate(const Schedule& schedule, absl::Span<const TaskCost> costs, const Policy& policy,
                    const SimulatedMachine& machine);

// Returns the figures of a simulated execution on several ranks. `machine`: the machine of each rank.
//
// The model of a message: it starts when both sides have begun it. Each rank has one outgoing and one incoming link,
// and messages on a link follow each other. A message occupies the sender's link for bytes / bandwidth, and then its
// send ends. It occupies the receiver's link at the same time or, if this link is busy, later. Its receive ends one
// latency after the last byte has passed both links. The model leaves out the times to match the two sides and to copy
// bytes.
//
// If the other rank of a message is not simulated, it is a mirror image. A mirror image receives at any time. It sends
// when the simulated rank sends it a message with the same tag. This is exact if all ranks have equal schedules, and
// each rank exchanges messages with one partner at a time, as for powers of two. Otherwise it is an approximation, in
// which no rank waits for a slower one.
Simulation SimulateRanks(absl::Span<const SimulatedRank> ranks, const Network& network, const Policy& policy,
                         const SimulatedMachine& machine);

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
