#include "weft/lab/rank_scaling.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <memory>
#include <utility>

#include "weft/core/status.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/messenger.h"
#include "weft/distributed/reduction.h"
#include "weft/graph/policies/policies.h"
#include "weft/lab/measure.h"
#include "weft/lab/measured.h"
#include "weft/lab/simulate.h"
#include "weft/lab/simulate_ranks.h"
#include "weft/lab/team.h"
#include "weft/train/task.h"

namespace weft {
namespace {

SimulatedMachine MachineOf(const RankScalingOptions& options) {
  SimulatedMachine machine = {.workers = options.workers};
  if (options.bandwidth.one_worker > 0) {
    machine.worker_bandwidth = options.bandwidth.one_worker;
    machine.bandwidth = std::max(options.bandwidth.per_worker * options.workers, options.bandwidth.one_worker);
  }
  return machine;
}

}  // namespace

RankStepOptions RankScaling::StepOf(int rank, int ranks) const {
  return {
      .graph = options_.graph,
      .rank = rank,
      .ranks = ranks,
      .micro_batches = options_.micro_batches > 0 ? options_.micro_batches : options_.micro_batches_per_rank * ranks,
      .bucket_bytes = options_.bucket_bytes};
}

absl::Status RankScaling::Measure() {
  for (const int ranks : {1, 2}) {
    RankStepOptions options = StepOf(0, ranks);
    // Of many micro-batches, four have all kinds of graphs of a rank.
    options.micro_batches = std::clamp<int64_t>(options.micro_batches, ranks, 4 * ranks);
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<RankStep> step, RankStep::Plan(options));
    std::vector<RunTimes> times(step->parts().size());
    for (int64_t run = 0; run < options_.runs; ++run) {
      WEFT_ASSIGN_OR_RETURN(const std::vector<double> seconds, step->Run(1));
      for (size_t p = 0; p < times.size(); ++p) times[p].Add(seconds[0], step->tiles(step->parts()[p]));
    }
    for (size_t p = 0; p < times.size(); ++p) costs_.Add(step->graph(step->parts()[p]), times[p].tiles());
  }
  return absl::OkStatus();
}

std::vector<TaskCost> RankScaling::Costs(const Graph& graph) {
  return TaskCosts(graph, costs_.TaskSeconds(graph), options_.cache_bytes);
}

absl::StatusOr<int> RankScaling::BusiestRank(int ranks) const {
  const int64_t micro_batches = StepOf(0, ranks).micro_batches;
  std::vector<MicroBatchRange> ranges;
  for (int rank = 0; rank < ranks; ++rank) {
    const RowRange rows = RowsOf({rank, ranks}, micro_batches);
    ranges.push_back({rows.begin, rows.end});
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<ReductionPlan> plans, PlanReduction(ReductionKind::kScatter, ranges));
  std::pair<int64_t, int64_t> most = {0, 0};  // micro-batches, pieces of messages
  int busiest = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    std::pair<int64_t, int64_t> here = {ranges[static_cast<size_t>(rank)].size(), 0};
    for (const ReductionAction& action : plans[static_cast<size_t>(rank)].actions) {
      if (action.kind != ReductionAction::kAdd) here.second += action.piece_end - action.piece_begin;
    }
    if (here <= most) continue;
    most = here;
    busiest = rank;
  }
  return busiest;
}

absl::StatusOr<RanksPrediction> RankScaling::Predict(int ranks) {
  std::vector<std::unique_ptr<RankStep>> steps;
  if (ranks > kMaxExactRanks) {
    WEFT_ASSIGN_OR_RETURN(const int busiest, BusiestRank(ranks));
    WEFT_ASSIGN_OR_RETURN(steps.emplace_back(), RankStep::Plan(StepOf(busiest, ranks)));
  }
  for (int rank = 0; rank < ranks && ranks <= kMaxExactRanks; ++rank) {
    WEFT_ASSIGN_OR_RETURN(steps.emplace_back(), RankStep::Plan(StepOf(rank, ranks)));
  }
  const SimulatedMachine machine = MachineOf(options_);
  RanksPrediction prediction = {.ranks = ranks, .micro_batches = StepOf(0, ranks).micro_batches};
  std::deque<Graph> graphs;  // to whose schedules `simulated` points
  std::vector<std::vector<TaskCost>> costs;
  std::vector<SimulatedRank> simulated;
  costs.reserve(steps.size());
  double slowest = 0;  // of the graphs without messages, on the rank that takes longest for them
  for (size_t i = 0; i < steps.size(); ++i) {
    double alone = 0;
    for (const RankStep::Part& part : steps[i]->parts()) {
      graphs.push_back(options_.reuse ? steps[i]->graph(part) : WithoutReuse(steps[i]->graph(part)));
      const Graph& graph = graphs.back();
      if (!part.has_messages) {
        alone += part.runs * Simulate(graph.compiled().schedule, Costs(graph), kCriticalPath, machine).makespan;
        continue;
      }
      costs.push_back(Costs(graph));
      simulated.push_back({.rank = steps[i]->rank(),
                           .schedule = &graph.compiled().schedule,
                           .costs = costs.back(),
                           .messages = MessagesOf(graph.compiled())});
    }
    slowest = std::max(slowest, alone);
    prediction.bytes = std::max(prediction.bytes, steps[i]->bytes());
  }
  prediction.seconds = slowest;
  if (ranks > 1) {
    const RanksSimulation last = SimulateRanks(simulated, options_.network, kCriticalPath, machine);
    const int rounds = std::bit_width(static_cast<unsigned>(ranks - 1));
    const double losses = 2 * rounds * options_.network.latency_seconds;
    prediction.seconds += last.makespan + losses;
    prediction.communication = last.communication + losses;
    prediction.hidden = last.hidden;
  }
  return prediction;
}

absl::StatusOr<std::vector<RanksPrediction>> RankScaling::PredictAll(absl::Span<const int> ranks) {
  WEFT_ASSIGN_OR_RETURN(const RanksPrediction one, Predict(1));
  std::vector<RanksPrediction> predictions;
  bool saturated = false;
  for (const int count : ranks) {
    WEFT_ASSIGN_OR_RETURN(RanksPrediction prediction, Predict(count));
    prediction.efficiency = prediction.throughput() / one.throughput() / count;
    if (!saturated && !predictions.empty()) {
      saturated = prediction.saturated = prediction.throughput() < kMinSpeedup * predictions.back().throughput();
    }
    predictions.push_back(prediction);
  }
  return predictions;
}

absl::StatusOr<double> RankScaling::MeasureRanks(int ranks) const {
  InProcessNetwork network(ranks, {.latency_seconds = options_.network.latency_seconds,
                                   .bytes_per_second = options_.network.bytes_per_second});
  std::vector<absl::StatusOr<std::vector<double>>> results(static_cast<size_t>(ranks), std::vector<double>());
  Team team(ranks);
  team.Run([&](int rank) {
    Messenger messenger(network.Connect(rank));
    RankStepOptions options = StepOf(rank, ranks);
    if (ranks > 1) options.transport = &messenger;
    absl::StatusOr<std::unique_ptr<RankStep>> step = RankStep::Plan(options);
    auto& result = results[static_cast<size_t>(rank)];
    result = step.ok() ? (*step)->Run(options_.runs) : absl::StatusOr<std::vector<double>>(step.status());
  });
  for (const auto& result : results) WEFT_RETURN_IF_ERROR(result.status());
  return Median(*results[0]);
}

}  // namespace weft
