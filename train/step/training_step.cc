// This file has the step of one micro-batch, which is one graph. train/step/accumulated_step.cc has the step of
// several.
#include "weft/train/step/training_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/distributed/piece_name.h"
#include "weft/graph/compile/speedup.h"

namespace weft {
namespace {

class WholeStep final : public TrainingStep {
 public:
  explicit WholeStep(const StepOptions& options) : TrainingStep(options) {}

  absl::Status Add(const TrainingProgram& program, const Optimizer& optimizer) {
    Entry& entry = entries_.emplace_back();
    entry.loss = program.loss;
    UpdateOptions update = {.all_or_none = true, .average_decay = options_.ema, .precision = options_.precision};
    if (options_.skip_deviations > 0) {
      entry.loss_limit = program.tape->Input("loss_limit", {kF32, {}});
      const Var loss = Cast(program.loss, kF32);
      const double nan = std::numeric_limits<double>::quiet_NaN();
      update.allowed = MaskFill(FillLike(loss, 1), Greater(loss, entry.loss_limit), nan);
    }
    entry.rate = program.tape->Input("learning_rate", {kF32, {}});
    const Minimized minimized = optimizer.Minimize(program.loss, entry.rate, update);
    entry.gradient_norm = minimized.gradient_norm;
    return AddGraph(*program.tape, {.fetch = {program.loss, entry.gradient_norm}, .update = {minimized}}, /*runs=*/0)
        .status();
  }

  absl::StatusOr<StepResult> Run(int64_t step, double rate, NextBatch next, double loss_limit) override {
    WEFT_ASSIGN_OR_RETURN(TrainingBatch batch, next({}));
    if (batch.targets == 0) return InvalidArgument("the batch of step ", step, " has no targets");
    const Entry& entry = entries_[batch.program];
    batch.feeds.push_back({entry.rate, static_cast<float>(rate)});
    if (options_.skip_deviations > 0) batch.feeds.push_back({entry.loss_limit, static_cast<float>(loss_limit)});
    parameters_->set_step(static_cast<uint32_t>(step));
    WEFT_ASSIGN_OR_RETURN(const Outputs outputs, runner(batch.program).Run(batch.feeds));
    StepResult result = {.loss = outputs.Scalar(entry.loss),
                         .gradient_norm = outputs.Scalar(entry.gradient_norm),
                         .tokens = batch.tokens};
    const bool high = options_.skip_deviations > 0 && result.loss > static_cast<float>(loss_limit);
    result.updated = std::isfinite(result.loss) && std::isfinite(result.gradient_norm) && !high;
    return result;
  }

  std::string FirstNan(int64_t step, NextBatch next) override {
    absl::StatusOr<TrainingBatch> batch = next({});
    if (!batch.ok()) return "";
    const Entry& entry = entries_[batch->program];
    parameters_->set_step(static_cast<uint32_t>(step));
    return FirstNanOf(*entry.loss.tape, {entry.loss, entry.gradient_norm}, batch->feeds);
  }

 private:
  struct Entry {
    Var loss, rate, loss_limit, gradient_norm;
  };

  std::vector<Entry> entries_;  // of each program, whose graph has the same index
};

}  // namespace

absl::StatusOr<size_t> TrainingStep::AddGraph(const Tape& tape, CompileOptions compile, double runs) {
  compile.precision = options_.precision;
  compile.memory_budget = options_.memory_budget;
  // If ranks divide gradients or weights, kernels may overwrite the bytes of messages. Sent gradients and gathered
  // weights would otherwise stay in memory until the step ends.
  compile.reuse_messages = options_.sharding == Sharding::kGradients || options_.sharding == Sharding::kWeights;
  WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(tape, compile));
  planned_bytes_ += graph.compiled().memory.planned;
  if (options_.threads == 0) threads_ = std::max(threads_, UsefulWorkers(graph, Cores()));
  graphs_.push_back({std::move(graph), runs});
  return graphs_.size() - 1;
}

absl::Status TrainingStep::Allocate(Parameters* parameters) {
  parameters_ = parameters;
  WEFT_RETURN_IF_ERROR(parameters->Create(buffers_));
  for (const DividedWeight& weight : divided_) {
    std::vector<ParameterPiece> mine;  // that this rank owns
    for (const WeightPiece& piece : weight.pieces) {
      if (piece.owner != options_.ranks.rank()) continue;
      mine.push_back({PieceName(weight.name, piece.rows), piece.rows.begin, piece.rows.end});
    }
    WEFT_RETURN_IF_ERROR(parameters->CreatePieces({weight.name, weight.type, weight.initializer}, mine));
  }
  for (const StepGraph& each : graphs_) {
    const RunnerOptions options = {
        .threads = threads(), .timed = options_.timed, .transport = options_.ranks.transport()};
    runners_.push_back(std::make_unique<Runner>(each.graph, parameters, options));
    WEFT_RETURN_IF_ERROR(runners_.back()->status());
  }
  return absl::OkStatus();
}

uint64_t TrainingStep::allocated_bytes() const {
  absl::flat_hash_set<absl::string_view> seen;
  for (const ParameterSpec& buffer : buffers_) seen.insert(buffer.name);  // planned_bytes() has them
  uint64_t bytes = planned_bytes_;
  for (const StepGraph& each : graphs_) {
    const Program& program = each.graph.program();
    for (const Node& node : program.nodes) {
      if (node.op != &kParameterOp) continue;
      const ParameterSpec& spec = program.parameter(node);
      if (seen.insert(spec.name).second) bytes += spec.type.bytes();
    }
  }
  return bytes;
}

absl::Span<const TileTime> TrainingStep::tile_times(size_t graph) const {
  if (runners_.empty() || runners_[graph]->workers_entered() == 0) return {};
  return runners_[graph]->tile_times();
}

std::string TrainingStep::FirstNanOf(const Tape& tape, const VarList& values, absl::Span<const FeedPair> feeds) const {
  absl::StatusOr<Graph> graph = Compile(tape, {.fetch = values, .precision = options_.precision});
  if (!graph.ok()) return "";
  Runner check(*std::move(graph), parameters_, {.threads = 1, .check_nan = true});
  return check.Run(feeds).ok() ? check.first_nan() : "";
}

absl::StatusOr<std::unique_ptr<TrainingStep>> TrainingStep::Plan(absl::Span<const TrainingProgram> programs,
                                                                 const Optimizer& optimizer,
                                                                 const StepOptions& options) {
  if (programs.empty()) return InvalidArgument("the task has no program");
  for (const TrainingProgram& program : programs) WEFT_RETURN_IF_ERROR(program.tape->status());
  if (options.micro_batches < options.ranks.size()) {
    return InvalidArgument("micro_batches is ", options.micro_batches, ", but ", options.ranks.size(),
                           " ranks need at least one each");
  }
  if (options.micro_batches > 1) {
    for (const TrainingProgram& program : programs) {
      for (const Tape::NamedValue& probe : program.tape->probes()) {
        absl::string_view statistic = probe.name;
        if (!absl::ConsumeSuffix(&statistic, kNextState)) continue;
        return InvalidArgument("micro_batches is ", options.micro_batches, ", but '", statistic,
                               "' is a statistic of a whole batch; wanted 1, on one rank");
      }
    }
    return PlanAccumulated(programs, optimizer, options);
  }
  auto step = std::make_unique<WholeStep>(options);
  for (const TrainingProgram& program : programs) WEFT_RETURN_IF_ERROR(step->Add(program, optimizer));
  return step;
}

}  // namespace weft
