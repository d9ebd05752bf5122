// Each micro-batch of the step has the same tokens. So a step of any size needs one batch of data.
#include "weft/lab/ranks/rank_step.h"

#include <algorithm>

#include "weft/base/status.h"
#include "weft/distributed/ranks.h"
#include "weft/lab/machine/measure.h"
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

bool HasMessages(const Graph& graph) {
  const std::vector<KernelCall>& calls = graph.compiled().calls;
  return std::any_of(calls.begin(), calls.end(), [](const KernelCall& call) { return !call.messages.empty(); });
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
    const bool has_messages = HasMessages(graph);
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

}  // namespace weft
