// Each micro-batch of the step has the same tokens. So a step of any size needs one batch of data.
#include "weft/lab/ranks/rank_step.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/op.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/index_range.h"
#include "weft/distributed/ranks.h"
#include "weft/distributed/reduction.h"
#include "weft/graph/compile/speedup.h"
#include "weft/graph/run/policies/policies.h"
#include "weft/lab/machine/measure.h"
#include "weft/lab/measured.h"
#include "weft/lab/simulate.h"
#include "weft/train/step/task.h"

namespace weft {
namespace {

constexpr double kLearningRate = 1e-4;

// Imaginary peers stand for the other ranks of a training. Each send ends at once, and each receive gets zeros. A
// message ends within the call that starts it, so a runner must have one thread.
class ImaginaryPeers final : public Transport {
 public:
  ImaginaryPeers(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void Send(absl::Span<const std::byte>, int /*to*/, int /*tag*/, Done done) override {
    done.call(done.object, done.argument);
  }
  void Receive(absl::Span<std::byte> bytes, int /*from*/, int /*tag*/, Done done) override {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    done.call(done.object, done.argument);
  }

 private:
  const int rank_, size_;
};

// Returns a key of a group. Groups of equal kernel calls have equal keys.
std::string Signature(const CompiledGraph& graph, const Group& group) {
  std::string text = absl::StrCat(group.tile_count);
  for (uint32_t s = group.first_call; s < group.end_call(); ++s) {
    const Node& node = graph.program.node(graph.calls[s].node);
    absl::StrAppend(&text, " ", node.op->name, ToString(TypeSpan(graph.program.InputTypes(node))),
                    ToString(TypeSpan(graph.program.OutputTypes(node))));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankStep>> RankStep::Plan(const RankStepOptions& options) {
  if (options.rank < 0 || options.rank >= options.ranks) {
    return InvalidArgument("rank ", options.rank, " is not one of ", options.ranks, " ranks, 0 to ", options.ranks - 1);
  }
  std::unique_ptr<RankStep> result(new RankStep());
  result->peers_ = std::make_unique<ImaginaryPeers>(options.rank, options.ranks);
  WEFT_ASSIGN_OR_RETURN(result->recorded_, RecordGraph(options.graph, /*updates=*/false));
  const RealGraph& recorded = *result->recorded_;
  if (!recorded.loss) return InvalidArgument(options.graph.name, " is a forward pass, not a training step");
  StepOptions step = recorded.step;
  step.micro_batches = options.micro_batches;
  step.threads = 1;
  step.sharding = options.sharding;
  step.bucket_bytes = options.bucket_bytes;
  step.timed = true;
  if (options.ranks > 1) step.ranks = Ranks(options.transport != nullptr ? options.transport : result->peers_.get());
  const TrainingProgram program = {.tape = recorded.tape, .loss = recorded.loss};
  WEFT_ASSIGN_OR_RETURN(result->step_, TrainingStep::Plan({program}, *recorded.optimizer, step));
  const int64_t mine = RowsOf({options.rank, options.ranks}, options.micro_batches).size();
  for (size_t i = 0; i < result->step_->graphs().size(); ++i) {
    const auto& [graph, fixed_runs] = result->step_->graphs()[i];
    const bool has_messages =
        absl::c_any_of(graph.compiled().calls, [](const KernelCall& call) { return !call.messages.empty(); });
    // Graph 0 runs all micro-batches of the rank, or all except the last.
    const auto of_program = static_cast<double>(has_messages || options.ranks == 1 ? mine : mine - 1);
    const double runs = i == 0 ? of_program : fixed_runs;
    if (runs > 0) result->parts_.push_back({i, runs, has_messages});
  }
  return result;
}

const Graph& RankStep::graph_with_messages() const {
  for (const Part& part : parts_) {
    if (part.has_messages) return graph(part);
  }
  return graph(parts_.front());
}

absl::StatusOr<std::vector<double>> RankStep::Run(int64_t runs) {
  if (parameters_ == nullptr) {
    parameters_ = std::make_unique<Parameters>(Parameters::Options{.seed = 1});
    WEFT_RETURN_IF_ERROR(step_->Allocate(parameters_.get()));
    WEFT_RETURN_IF_ERROR(RunOnce().status());
  }
  std::vector<double> seconds;
  for (int64_t run = 0; run < runs; ++run) {
    WEFT_ASSIGN_OR_RETURN(seconds.emplace_back(), RunOnce());
  }
  return seconds;
}

absl::StatusOr<double> RankStep::RunOnce() {
  const auto next = [this](MicroBatch) -> absl::StatusOr<TrainingBatch> { return recorded_->batch; };
  const Clock::time_point start = Clock::now();
  WEFT_RETURN_IF_ERROR(step_->Run(next_step_++, kLearningRate, next).status());
  return SecondsSince(start);
}

void GroupCosts::Add(const Graph& graph, absl::Span<const TileTime> tiles) {
  const CompiledGraph& compiled = graph.compiled();
  const std::vector<double> calls = CallSeconds(graph, tiles);
  for (const Group& group : compiled.groups) {
    Mean& mean = groups_[Signature(compiled, group)];
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) mean.sum += calls[s];
    mean.count += 1;
  }
  std::vector<TileSample> samples = Samples(graph, calls);
  samples_.insert(samples_.end(), std::make_move_iterator(samples.begin()), std::make_move_iterator(samples.end()));
}

std::vector<double> GroupCosts::TaskSeconds(const Graph& graph) {
  if (!samples_.empty() && !calibration_) calibration_ = Calibration::Fit(samples_);
  const CompiledGraph& compiled = graph.compiled();
  std::vector<double> seconds = calibration_->TaskSeconds(graph);
  for (const Group& group : compiled.groups) {
    const bool has_messages = !compiled.calls[group.first_call].messages.empty();
    const auto measured = groups_.find(Signature(compiled, group));
    if (!has_messages && measured == groups_.end()) continue;
    const double known = has_messages ? 0 : measured->second.sum / measured->second.count / group.tile_count;
    std::fill_n(seconds.begin() + group.first_task, group.tile_count, known);
  }
  return seconds;
}

RankStepOptions RankScaling::StepOf(int rank, int ranks) const {
  RankStepOptions step = {.graph = options_.graph,
                          .rank = rank,
                          .ranks = ranks,
                          .micro_batches = options_.micro_batches,
                          .sharding = ranks > 1 ? options_.sharding : Sharding::kNone,
                          .bucket_bytes = options_.bucket_bytes};
  if (step.micro_batches == 0) step.micro_batches = options_.micro_batches_per_rank * ranks;
  return step;
}

absl::Status RankScaling::Measure() {
  struct TimedRankStep {
    std::unique_ptr<RankStep> step;
    std::vector<RunTimes> times;  // of each part
    absl::Status status;
  };
  // By rank of the machine: the step of a single rank, and the step of one of two ranks.
  std::vector<std::array<TimedRankStep, 2>> of_ranks(static_cast<size_t>(options_.ranks_per_machine));
  for (std::array<TimedRankStep, 2>& mine : of_ranks) {
    for (const int ranks : {1, 2}) {
      RankStepOptions options = StepOf(0, ranks);
      // Four micro-batches on a rank suffice: they use every kind of graph of a rank.
      options.micro_batches = std::clamp<int64_t>(options.micro_batches, ranks, 4 * ranks);
      TimedRankStep& timed = mine[static_cast<size_t>(ranks - 1)];
      WEFT_ASSIGN_OR_RETURN(timed.step, RankStep::Plan(options));
      timed.times.resize(timed.step->parts().size());
    }
  }
  Team team(options_.ranks_per_machine);
  for (int64_t run = 0; run < options_.runs; ++run) {  // in turns, so that both steps see the same load
    for (size_t i = 0; i < 2; ++i) {
      team.Run([&](int rank) {
        auto& [step, times, status] = of_ranks[static_cast<size_t>(rank)][i];
        status = step->Run(1).status();
        for (size_t p = 0; status.ok() && p < times.size(); ++p) times[p].Add(step->tiles(step->parts()[p]));
      });
      for (const auto& each : of_ranks) WEFT_RETURN_IF_ERROR(each[i].status);
    }
  }
  for (const auto& each : of_ranks) {
    for (const auto& [step, times, status] : each) {
      for (size_t p = 0; p < times.size(); ++p) costs_.Add(step->graph(step->parts()[p]), times[p].tiles());
    }
  }
  return absl::OkStatus();
}

std::vector<TaskCost> RankScaling::Costs(const Graph& graph) {
  return TaskCosts(graph, costs_.TaskSeconds(graph), options_.cache_bytes);
}

absl::StatusOr<int> RankScaling::BusiestRank(int ranks) const {
  const int64_t micro_batches = StepOf(0, ranks).micro_batches;
  std::vector<IndexRange> ranges;
  for (int rank = 0; rank < ranks; ++rank) {
    ranges.push_back(RowsOf({rank, ranks}, micro_batches));
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
  RanksPrediction prediction = {.ranks = ranks, .micro_batches = StepOf(0, ranks).micro_batches};
  const SimulatedMachine machine = MachineOf(options_.sharing, options_.workers);
  std::vector<std::vector<SimulatedRank>> stages;  // by graph with messages: this graph on each simulated rank
  std::vector<Graph> graphs;                       // own the schedules of the stages
  double slowest = 0;                              // maximum over ranks: seconds of the graphs without messages
  for (const std::unique_ptr<RankStep>& step : steps) {
    double alone = 0;
    size_t stage = 0;
    for (const RankStep::Part& part : step->parts()) {
      const Graph& graph = graphs.emplace_back(options_.reuse ? step->graph(part) : WithoutReuse(step->graph(part)));
      const CompiledGraph& compiled = graph.compiled();  // stays where it is when `graphs` grows
      if (!part.has_messages) {
        alone += part.runs * Simulate(compiled.schedule, Costs(graph), kCriticalPath, machine).makespan;
        continue;
      }
      if (stages.size() == stage) stages.emplace_back();
      stages[stage++].push_back({step->rank(), &compiled.schedule, Costs(graph), MessagesOf(compiled)});
    }
    slowest = std::max(slowest, alone);
  }
  prediction.seconds = slowest;
  for (const std::vector<SimulatedRank>& stage : stages) {
    const Simulation simulation = SimulateRanks(stage, options_.network, kCriticalPath, machine);
    prediction.seconds += simulation.makespan;
    prediction.communication += simulation.communication;
    prediction.hidden += simulation.hidden;
  }
  const int rounds = ranks > 1 ? std::bit_width(static_cast<unsigned>(ranks - 1)) : 0;
  const double losses = 2 * rounds * options_.network.latency_seconds;
  prediction.seconds += losses;
  prediction.communication += losses;
  for (const auto& [name, sharding] : kShardingNames) {
    RankStepOptions options = StepOf(steps[0]->rank(), ranks);
    options.sharding = ranks > 1 ? sharding : Sharding::kNone;
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<RankStep> step, RankStep::Plan(options));
    prediction.bytes.push_back(step->bytes());
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
  std::vector<absl::StatusOr<std::vector<double>>> results(static_cast<size_t>(ranks), std::vector<double>());
  const auto run = [&](Transport* transport) {
    RankStepOptions options = StepOf(transport->rank(), ranks);
    if (ranks > 1) options.transport = transport;
    absl::StatusOr<std::unique_ptr<RankStep>> step = RankStep::Plan(options);
    auto& result = results[static_cast<size_t>(transport->rank())];
    result = step.ok() ? (*step)->Run(options_.runs) : absl::StatusOr<std::vector<double>>(step.status());
  };
  RunRanks(ranks, run, Imitation(options_.network));
  for (const auto& result : results) WEFT_RETURN_IF_ERROR(result.status());
  return Median(*results[0]);
}

}  // namespace weft
