// This file compiles and runs the graphs of a step. train/step/gradient_sums.h records the sums of gradients in them.
//
// With several ranks, the graph of a rank's last micro-batch also adds the gradients of all ranks. A message leaves as
// soon as its gradients exist, during the backward pass. If ranks divide the weights, the graphs of micro-batches also
// gather weights. So each rank runs equally many of them; in place of a micro-batch, a graph may only gather.
//
// Plan records and compiles all graphs in the order in which a step runs them, and Run runs them in this order.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/status.h"
#include "weft/distributed/weight_gathers.h"
#include "weft/train/step/gradient_sums.h"
#include "weft/train/step/training_step.h"

namespace weft {
namespace {

// The figures of a micro-batch. Ranks exchange them.
struct MicroBatchResult {
  double loss = 0;     // the sum over the targets
  double targets = 0;  // number of targets
  double tokens = 0;   // number of tokens that are not padding
};

// Returns the results of all micro-batches, in order. `mine`: those of this rank's micro-batches, at least one.
std::vector<MicroBatchResult> GatherResults(const Ranks& ranks, absl::Span<const MicroBatchResult> mine) {
  const absl::string_view bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(MicroBatchResult));
  const std::string gathered = absl::StrJoin(ranks.AllGather(bytes), "");
  std::vector<MicroBatchResult> all(gathered.size() / sizeof(MicroBatchResult));
  std::memcpy(all.data(), gathered.data(), gathered.size());
  return all;
}

// Returns the sum of one figure in the order in which gradients are added: neighbours first, then neighbouring pairs.
double TreeSum(absl::Span<const MicroBatchResult> results, double MicroBatchResult::*figure) {
  std::vector<double> values;
  for (const MicroBatchResult& result : results) values.push_back(result.*figure);
  while (values.size() > 1) {
    const size_t count = values.size();
    for (size_t i = 0; i < count; i += 2) values[i / 2] = i + 1 < count ? values[i] + values[i + 1] : values[i];
    values.resize((count + 1) / 2);
  }
  return values.empty() ? 0 : values[0];
}

// A graph that is recorded on slot 0, or on slots 0 and 1, and runs on any slots.
struct SlotGraph {
  size_t graph = 0;
  std::vector<int> slots;  // slots[i]: the slot that the graph's runner uses in place of slot i
};

class AccumulatedStep final : public TrainingStep {
 public:
  explicit AccumulatedStep(const StepOptions& options) : TrainingStep(options) {}

  absl::Status Plan(absl::Span<const TrainingProgram> programs, const Optimizer& optimizer) {
    WEFT_RETURN_IF_ERROR(PlanSums(programs, optimizer));
    for (const TrainingProgram& program : programs) WEFT_RETURN_IF_ERROR(AddProgram(program, optimizer));
    if (sums_->several_ranks()) WEFT_RETURN_IF_ERROR(AddReductions());
    if (plan().slots > 1) {  // with two micro-batches, nothing is added
      size_t adds = 0;
      for (const SumPlan::Pair& pair : plan().pairs) adds += pair.adds.size();
      Tape tape;
      const VarList added = sums_->AddSlots(&tape);
      WEFT_ASSIGN_OR_RETURN(adding_.graph, AddGraph(tape, {.update = {tape.Group(added)}}, static_cast<double>(adds)));
    }
    return AddUpdate(optimizer);
  }

  absl::StatusOr<StepResult> Run(int64_t step, double rate, NextBatch next, double loss_limit) override {
    const int64_t count = options_.micro_batches;
    std::vector<MicroBatchResult> mine;
    absl::Status failed;  // with several ranks: the first error of this rank's micro-batches
    for (const SumPlan::Pair& pair : plan().pairs) {
      bool empty = true;  // whether the pair has no gradients yet
      for (int64_t i = pair.begin; i < pair.end; ++i) {
        absl::StatusOr<TrainingBatch> batch = next({i, count});
        parameters_->set_step(static_cast<uint32_t>(step * count + i));
        const bool reduces = sums_->several_ranks() && !separate() && i + 1 == sums_->mine().end;
        const absl::StatusOr<MicroBatchResult> result = RunMicroBatch(pair.slot, empty, reduces, std::move(batch));
        if (!result.ok() && !sums_->several_ranks()) return result.status();
        // The other ranks wait for this rank's sums. So the step goes on with an empty micro-batch.
        failed.Update(result.status());
        mine.push_back(result.ok() ? *result : MicroBatchResult());
        empty = empty && mine.back().targets == 0;
        if (separate() && mine.back().targets == 0) WEFT_RETURN_IF_ERROR(RunGraph(gathering_));
      }
      if (empty) WEFT_RETURN_IF_ERROR(sums_->Clear(pair.slot, parameters_));
      for (const auto& [into, from] : pair.adds) {
        WEFT_RETURN_IF_ERROR(Use({into, from}, &adding_));
        WEFT_RETURN_IF_ERROR(RunGraph(adding_.graph));
      }
    }
    for (int64_t i = sums_->mine().size(); separate() && i < rounds(); ++i) WEFT_RETURN_IF_ERROR(RunGraph(gathering_));
    if (sums_->several_ranks() && (separate() || mine.back().targets == 0)) WEFT_RETURN_IF_ERROR(RunGraph(reducing_));
    parameters_->set_step(static_cast<uint32_t>((step + 1) * count));
    const std::vector<MicroBatchResult> all = GatherResults(options_.ranks, mine);
    const double targets = TreeSum(all, &MicroBatchResult::targets);
    if (targets == 0 && !failed.ok()) return failed;
    if (targets == 0) return InvalidArgument("the batch of step ", step, " has no targets");
    StepResult result = {.loss = TreeSum(all, &MicroBatchResult::loss) / targets,
                         .gradient_norm = std::numeric_limits<double>::quiet_NaN(),
                         .tokens = static_cast<int64_t>(TreeSum(all, &MicroBatchResult::tokens))};
    if (!std::isfinite(result.loss) || (options_.skip_deviations > 0 && result.loss > loss_limit)) {
      if (!failed.ok()) return failed;
      return result;
    }
    WEFT_ASSIGN_OR_RETURN(const Outputs outputs, runner(update_).Run({{rate_, static_cast<float>(rate)},
                                                                      {targets_, static_cast<float>(targets)}}));
    if (!failed.ok()) return failed;  // only now, because the update may have messages, too
    parameters_->set_step(static_cast<uint32_t>((step + 1) * count));
    result.gradient_norm = outputs.Scalar(gradient_norm_);
    result.updated = std::isfinite(result.gradient_norm);
    return result;
  }

  std::string FirstNan(int64_t step, NextBatch next) override {
    std::string first;
    if (gathers_) return first;  // the graph would need whole weights
    for (int64_t i = sums_->mine().begin; i < sums_->mine().end && first.empty(); ++i) {
      absl::StatusOr<TrainingBatch> batch = next({i, options_.micro_batches});
      if (!batch.ok() || batch->targets == 0) continue;
      const Entry& entry = entries_[batch->program];
      batch->feeds.push_back({entry.targets, static_cast<float>(batch->targets)});
      VarList values = entry.sums.gradients;
      values.push_back(entry.loss);
      parameters_->set_step(static_cast<uint32_t>(step * options_.micro_batches + i));
      first = FirstNanOf(*entry.loss.tape, values, batch->feeds);
    }
    return first;
  }

 private:
  static constexpr int32_t kFlags[] = {0, 1};

  // A program with the sums of the gradients of its micro-batch, and its graphs.
  struct Entry {
    Var loss, targets;
    MicroBatchSums sums;
    SlotGraph adding;  // adds the gradients to a slot
    size_t last = 0;   // with several ranks: also adds the gradients of all ranks
  };

  // Plans the sums of the gradients of the weights of programs[0], which must have all weights. Plans the pieces of
  // each weight if the ranks divide the weights among themselves.
  absl::Status PlanSums(absl::Span<const TrainingProgram> programs, const Optimizer& optimizer) {
    for (const ParameterSpec& spec : programs[0].tape->program().parameters) {
      if (spec.kind == ParameterKind::kWeight) tape_.Parameter(spec.name, spec.type, spec.initializer);
    }
    weights_ = optimizer.TrainedWeights(&tape_);
    WEFT_RETURN_IF_ERROR(tape_.status());
    if (weights_.empty()) return InvalidArgument("the model has no weights to train");
    std::vector<std::string> names;
    std::vector<TensorType> types;
    for (Var weight : weights_) {
      names.push_back(tape_.ParameterName(weight));
      types.push_back(weight.type());
    }
    WEFT_ASSIGN_OR_RETURN(sums_, GradientSums::Plan(options_, programs, names, types));
    buffers_ = sums_->buffers();
    for (const ParameterSpec& buffer : buffers_) planned_bytes_ += buffer.type.bytes();
    for (size_t i = 0; i < names.size() && options_.sharding == Sharding::kWeights; ++i) {
      const Program& program = tape_.program();
      const Initializer& initializer = program.parameter(program.producer(weights_[i].id)).initializer;
      std::vector<WeightPiece> pieces = sums_->Pieces(types[i]);
      if (!pieces.empty()) divided_.push_back({names[i], types[i], initializer, std::move(pieces)});
    }
    if (divided_.empty()) return absl::OkStatus();
    gathers_.emplace(divided_, options_.ranks.rank(), options_.ranks.size(),
                     [this](int tag) { return sums_->BucketOf(tag); });
    return absl::OkStatus();
  }

  // Records the sum of the gradients of one program's micro-batch.
  absl::Status AddProgram(const TrainingProgram& program, const Optimizer& optimizer) {
    Tape* const tape = program.tape;
    Entry& entry = entries_.emplace_back();
    entry.loss = program.loss;
    entry.targets = tape->Input("targets_of_batch", {kF32, {}});
    const Var first = tape->Input("first_of_pair", {kI32, {}}, {.below = 2});
    const VarList weights = optimizer.TrainedWeights(tape);
    // The gradient of a mean loss times its number of targets is the gradient of the summed loss.
    entry.sums = sums_->Add(program.loss * Cast(entry.targets, program.loss.dtype()), weights, first);
    // Only the graph of a last micro-batch runs if the ranks add in it, and this rank has no other micro-batch.
    if (!separate() && sums_->has_only_last()) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(
        entry.adding.graph,
        AddGathers(*tape, {.fetch = {program.loss}, .update = {tape->Group(entry.sums.sums)}}, /*runs=*/0));
    return absl::OkStatus();
  }

  // Records the graphs that add the gradients of all ranks: one for each program, and one for a rank whose last
  // micro-batch is empty.
  absl::Status AddReductions() {
    for (Entry& entry : entries_) {
      if (separate()) break;
      Tape* const tape = entry.loss.tape;
      const VarList updates = sums_->Reduce(tape, entry.sums);
      WEFT_ASSIGN_OR_RETURN(entry.last, AddGathers(*tape, {.fetch = {entry.loss}, .update = {tape->Group(updates)}},
                                                   /*runs=*/1.0 / static_cast<double>(entries_.size())));
    }
    Tape reducing, gathering;
    const VarList updates = sums_->ReduceWithoutGradients(&reducing);
    const CompileOptions compile = {.update = {reducing.Group(updates)}};
    WEFT_ASSIGN_OR_RETURN(
        reducing_, separate() ? AddGraph(reducing, compile, /*runs=*/1) : AddGathers(reducing, compile, /*runs=*/0));
    if (!separate()) return absl::OkStatus();
    const VarList gathered = gathers_->Record(&gathering);
    WEFT_ASSIGN_OR_RETURN(gathering_, AddGraph(gathering, {.update = {gathering.Group(gathered)}}, /*runs=*/0));
    return absl::OkStatus();
  }

  // Records the update.
  absl::Status AddUpdate(const Optimizer& optimizer) {
    rate_ = tape_.Input("learning_rate", {kF32, {}});
    targets_ = tape_.Input("targets_of_step", {kF32, {}});
    const UpdateOptions update = {.all_or_none = true, .average_decay = options_.ema, .precision = options_.precision};
    const Minimized step = sums_->Update(optimizer, weights_, rate_, targets_, update);
    gradient_norm_ = step.gradient_norm;
    WEFT_ASSIGN_OR_RETURN(update_, AddGraph(tape_, {.fetch = {gradient_norm_}, .update = {step.update}}, /*runs=*/1));
    return absl::OkStatus();
  }

  // Adds a graph like AddGraph. If weights are divided, the graph gathers them.
  absl::StatusOr<size_t> AddGathers(const Tape& tape, CompileOptions compile, double runs) {
    if (gathers_) {
      compile.distribute = [this](Program* to, std::vector<ValueId>* roots) { return gathers_->Insert(to, roots); };
    }
    return AddGraph(tape, std::move(compile), runs);
  }

  // Runs one micro-batch, which adds its gradients to `slot`, and returns its figures. `first`: whether the gradients
  // replace the slot's content. `reduces`: whether the graph then also adds the gradients of all ranks.
  absl::StatusOr<MicroBatchResult> RunMicroBatch(int slot, bool first, bool reduces,
                                                 absl::StatusOr<TrainingBatch> batch) {
    WEFT_RETURN_IF_ERROR(batch.status());
    if (batch->targets == 0) return MicroBatchResult{};
    Entry& entry = entries_[batch->program];
    if (!reduces) WEFT_RETURN_IF_ERROR(Use({slot}, &entry.adding));
    batch->feeds.push_back({entry.targets, static_cast<float>(batch->targets)});
    batch->feeds.push_back({entry.sums.first, absl::Span<const int32_t>(&kFlags[first ? 1 : 0], 1)});
    WEFT_ASSIGN_OR_RETURN(const Outputs outputs, runner(reduces ? entry.last : entry.adding.graph).Run(batch->feeds));
    const auto targets = static_cast<double>(batch->targets);
    return MicroBatchResult{outputs.Scalar(entry.loss) * targets, targets, static_cast<double>(batch->tokens)};
  }

  // Runs a graph without feeds.
  absl::Status RunGraph(size_t graph) { return runner(graph).Run({}).status(); }

  // Makes `graph` use slots[i] in place of slot i.
  absl::Status Use(const std::vector<int>& slots, SlotGraph* graph) {
    if (slots == graph->slots) return absl::OkStatus();
    graph->slots = slots;
    return runner(graph->graph).UseParameters(sums_->SlotNames(slots));
  }

  const SumPlan& plan() const { return sums_->plan(); }
  // Reports whether a graph of its own adds the gradients of all ranks, because weights are divided. Messages need one
  // order on all ranks. If a rank has several micro-batches, or a step several programs, the graph of a micro-batch
  // thus gathers weights only. Otherwise all ranks run the same graph, in which gradients leave between the gathers.
  bool separate() const { return gathers_.has_value() && !sums_->streams(); }
  // Returns the maximum number of micro-batches of a rank. In each of these rounds, all ranks gather weights.
  int64_t rounds() const { return RowsOf({0, options_.ranks.size()}, options_.micro_batches).size(); }

  std::optional<GradientSums> sums_;      // set by PlanSums
  std::optional<WeightGathers> gathers_;  // of the divided weights; nullopt if there are none
  std::vector<Entry> entries_;            // of each program
  SlotGraph adding_;                      // adds slot 1 to slot 0
  size_t reducing_ = 0;                   // adds the gradients of all ranks
  size_t gathering_ = 0;                  // gathers weights without using them
  Tape tape_;                             // of the update
  VarList weights_;                       // the trained weights on tape_
  Var rate_, targets_, gradient_norm_;    // of the update
  size_t update_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingStep>> TrainingStep::PlanAccumulated(absl::Span<const TrainingProgram> programs,
                                                                            const Optimizer& optimizer,
                                                                            const StepOptions& options) {
  auto step = std::make_unique<AccumulatedStep>(options);
  WEFT_RETURN_IF_ERROR(step->Plan(programs, optimizer));
  return step;
}

}  // namespace weft
