// The runs of a graph under one policy, that take turns with those under others. What a turn finds out besides seconds,
// of a run:
//
//   executed     nodes
//   busy         seconds that workers were at nodes, together; not if nodes do nothing
//   path         seconds of the longest path, by what its nodes took; likewise, and under policy serial only
//   steals       where workers steal
//   first_node   seconds until a node begins; of a synthetic graph in runs of their own
#ifndef WEFT_BENCH_POLICY_RUNS_H_
#define WEFT_BENCH_POLICY_RUNS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/bench/node_work.h"
#include "weft/bench/schedule_row.h"
#include "weft/bench/turns.h"
#include "weft/graph/graph.h"
#include "weft/graph/policies/policies.h"
#include "weft/graph/runner.h"

namespace weft {

class PolicyRuns {
 public:
  PolicyRuns(const Policy* policy, int threads) : policy_(*policy), threads_(threads) {}
  virtual ~PolicyRuns() = default;
  PolicyRuns(const PolicyRuns&) = delete;
  PolicyRuns& operator=(const PolicyRuns&) = delete;

  virtual absl::StatusOr<Turn> TakeTurn() = 0;

  const Policy& policy() const { return policy_; }
  int threads() const { return threads_; }

 private:
  const Policy& policy_;
  const int threads_;
};

// Of a graph whose nodes are all alike. In a turn they run it for a few milliseconds untimed, unless a run takes long
// anyway; then a run is timed, or many if the graph is small.
class SyntheticRuns : public PolicyRuns {
 public:
  // `schedule` and `work` must last. So many nodes are on the longest path.
  SyntheticRuns(const Policy* policy, int threads, const Schedule* schedule, double path_nodes, const NodeWork* work);

  absl::StatusOr<Turn> TakeTurn() override;

 private:
  uint64_t WarmUp();
  void Run(uint64_t times);
  double CountAndTakeBusySeconds(uint64_t runs);
  double FirstNodeSeconds(uint64_t runs);

  const uint32_t nodes_;
  const double path_nodes_;
  const NodeWork& work_;
  const std::unique_ptr<Executor> executor_;
  double executed_ = 0;  // by a run
};

// Of a compiled graph. In a turn one run is untimed, one timed, by a runner of its own: where its values lie in memory
// makes a difference, which must not be a policy's.
class RealRuns : public PolicyRuns {
 public:
  // `parameters` and what the feeds point to must last.
  RealRuns(const Policy* policy, int threads, const Graph& graph, std::vector<FeedPair> feeds, Parameters* parameters);

  absl::StatusOr<Turn> TakeTurn() override;

 private:
  const Graph graph_;
  const std::vector<FeedPair> feeds_;
  Parameters& parameters_;
};

// Those of one graph that take turns. The first is under policy serial.
using PolicyGroup = std::vector<std::unique_ptr<PolicyRuns>>;
// A row for each of the group; `common` is what they have in common.
absl::StatusOr<std::vector<ScheduleRow>> Measure(const PolicyGroup& group, int repeats, ScheduleRow common);

}  // namespace weft

#endif  // WEFT_BENCH_POLICY_RUNS_H_
