// PolicyRuns runs a graph under one policy; several PolicyRuns take turns. A turn reports the seconds of a run, and:
//
//   executed     number of nodes that ran
//   busy         seconds that workers spent in nodes; absent if nodes do nothing
//   path         seconds of the critical path by the nodes' times; only under policy serial, if nodes do work
//   steals       number of steals; only under policies that steal
//   first_node   seconds until the first node begins; only for synthetic graphs, in separate runs
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

// Runs a synthetic graph, whose nodes all take the same time. A turn begins with a few milliseconds of untimed runs,
// unless a single run takes long. Then it times one run, or several if the graph is small.
class SyntheticRuns : public PolicyRuns {
 public:
  // `path_nodes`: number of nodes on the longest path. `schedule` and `work` must outlive this object.
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
  double executed_ = 0;  // nodes per run
};

// Runs a compiled graph. A turn has one untimed and one timed run of a new runner. A new runner has values at new
// addresses, which affect the time, so no policy keeps lucky addresses.
class RealRuns : public PolicyRuns {
 public:
  // `parameters`, and the memory to which `feeds` refer, must outlive this object.
  RealRuns(const Policy* policy, int threads, const Graph& graph, std::vector<FeedPair> feeds, Parameters* parameters);

  absl::StatusOr<Turn> TakeTurn() override;

 private:
  const Graph graph_;
  const std::vector<FeedPair> feeds_;
  Parameters& parameters_;
};

// The runs of one graph that take turns. The first of them has policy serial.
using PolicyGroup = std::vector<std::unique_ptr<PolicyRuns>>;
// Returns a row for each element of the group. `common` holds the fields that all rows share.
absl::StatusOr<std::vector<ScheduleRow>> Measure(const PolicyGroup& group, int repeats, ScheduleRow common);

}  // namespace weft

#endif  // WEFT_BENCH_POLICY_RUNS_H_
