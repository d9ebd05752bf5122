// SimulateRanks runs the schedules of several ranks in simulated time, with the messages between them.
//
//   const SimulatedRank rank = {.rank = 0, .schedule = &schedule, .costs = costs, .messages = MessagesOf(graph)};
//   const RanksSimulation simulation = SimulateRanks({rank}, network, kCriticalPath, {.workers = 2});
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
#ifndef WEFT_LAB_RANKS_SIMULATE_RANKS_H_
#define WEFT_LAB_RANKS_SIMULATE_RANKS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/policies/policies.h"
#include "weft/graph/schedule.h"
#include "weft/lab/network.h"
#include "weft/lab/simulated_workers.h"

namespace weft {

struct RankMessage {
  uint32_t task = 0;
  bool sends = false;
  int peer = 0, tag = 0;
  double bytes = 0;
};
// Returns the messages of a compiled graph.
std::vector<RankMessage> MessagesOf(const CompiledGraph& graph);

struct SimulatedRank {
  int rank = 0;
  const Schedule* schedule = nullptr;
  absl::Span<const TaskCost> costs;        // by task; the costs of messages have no effect
  std::vector<RankMessage> messages = {};  // at most one for each direction, peer and tag
};

struct RanksSimulation {
  double makespan = 0;  // seconds until the last rank has ended
  // Two figures of the rank that ends last. `communication`: seconds in which at least one of its messages was under
  // way. `hidden`: the seconds of `communication` in which a worker of the rank ran a task. A message is under way from
  // its start, which may be before the other rank is ready, to its end.
  double communication = 0, hidden = 0;
};

// Returns the figures of a simulated execution. `policy` must have a queue. `machine`: the machine of each rank.
RanksSimulation SimulateRanks(absl::Span<const SimulatedRank> ranks, const Network& network, const Policy& policy,
                              const SimulatedMachine& machine);

}  // namespace weft

#endif  // WEFT_LAB_RANKS_SIMULATE_RANKS_H_
