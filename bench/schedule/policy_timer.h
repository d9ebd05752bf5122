// A PolicyTimer measures a graph under one policy; several timers take turns. A turn reports the seconds of an
// execution and the following figures:
//
//   executed    number of nodes that ran
//   busy        seconds that workers spent in nodes, added up; absent if nodes do nothing
//   path        seconds of the critical path, by the nodes' times; only under policy serial, and if nodes do something
//   steals      number of steals; only under policies that steal
//   first_node  seconds until the first node begins; for a synthetic graph, the median of separate executions
#ifndef WEFT_BENCH_SCHEDULE_POLICY_TIMER_H_
#define WEFT_BENCH_SCHEDULE_POLICY_TIMER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/bench/schedule/node_work.h"
#include "weft/bench/schedule/schedule_row.h"
#include "weft/bench/turns.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/graph/run/runner.h"

namespace weft {

class PolicyTimer {
 public:
  PolicyTimer(const Policy* policy, int threads) : policy_(*policy), threads_(threads) {}
  virtual ~PolicyTimer() = default;
  PolicyTimer(const PolicyTimer&) = delete;
  PolicyTimer& operator=(const PolicyTimer&) = delete;

  virtual absl::StatusOr<Turn> TakeTurn() = 0;

  const Policy& policy() const { return policy_; }
  int threads() const { return threads_; }

 private:
  const Policy& policy_;
  const int threads_;
};

// Runs a synthetic graph, whose nodes all take the same time. A turn first runs the graph untimed for 2 ms, unless its
// nodes together take longer than a second. Then the turn times one execution, or many if the graph is small.
class SyntheticTimer : public PolicyTimer {
 public:
  // `schedule` and `work` must outlive this. `path_nodes`: the number of nodes on the longest path.
  SyntheticTimer(const Policy* policy, int threads, const Schedule* schedule, double path_nodes, const NodeWork* work);

  absl::StatusOr<Turn> TakeTurn() override;

 private:
  uint64_t WarmUp();
  void Run(uint64_t times);
  double CountAndTakeBusySeconds(uint64_t executions);
  double FirstNodeSeconds(uint64_t executions);

  const uint32_t nodes_;
  const double path_nodes_;
  const NodeWork& work_;
  const std::unique_ptr<Executor> executor_;
  double executed_ = 0;  // nodes per execution
};

// Runs a compiled graph. A turn has one untimed and one timed execution, by a new runner. The addresses of a runner's
// values affect the time, so no policy should keep the same ones in all turns.
class RealTimer : public PolicyTimer {
 public:
  // `parameters` and the memory that `feeds` refer to must outlive this.
  RealTimer(const Policy* policy, int threads, const Graph& graph, std::vector<FeedPair> feeds, Parameters* parameters);

  absl::StatusOr<Turn> TakeTurn() override;

 private:
  const Graph graph_;
  const std::vector<FeedPair> feeds_;
  Parameters& parameters_;
};

// Timers that take turns on one graph. The first has policy serial.
using PolicyTimers = std::vector<std::unique_ptr<PolicyTimer>>;
// Lets each timer take a turn in each of `rounds`, and returns a row for each timer. `common` holds the fields that all
// rows share.
absl::StatusOr<std::vector<ScheduleRow>> Measure(const PolicyTimers& timers, Rounds* rounds, ScheduleRow common);

}  // namespace weft

#endif  // WEFT_BENCH_SCHEDULE_POLICY_TIMER_H_
