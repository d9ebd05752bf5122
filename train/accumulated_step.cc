// This file compiles and runs the graphs of a step. train/gradient_sums.h records the sums of gradients in them.
//
// With several ranks, the graph of a rank's last micro-batch also adds the gradients of all ranks. A message leaves as
// soon as its gradients exist, during the backward pass. If ranks divide the weights, the graphs of micro-batches also
// gather weights. So each rank runs equally many of them; in place of a micro-batch, a graph may only gather.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/status.h"
#include "weft/distributed/piece_name.h"
#include "weft/distributed/weight_gathers.h"
#include "weft/train/gradient_sums.h"
#include "weft/train/late_rows.h"
#include "weft/train/training_step.h"

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
  std::vector<MicroBatchResult> all;
  for (const std::string& theirs : ranks.AllGather(bytes)) {
    const size_t count = theirs.size() / sizeof(MicroBatchResult);
    all.resize(all.size() + count);
    std::memcpy(&all[all.size() - count], theirs.data(), theirs.size());
  }
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
struct SlotRunner {
  std::unique_ptr<Runner> runner;
  std::vector<int> slots;  // slots[i]: the slot that it uses in place of slot i
};

class AccumulatedStep final : public TrainingStep {
 public:
  AccumulatedStep(const StepOptions& options, size_t programs)
      : TrainingStep(options),
        streams_(options.sharding == Sharding::kWeights && options.ranks.size() > 1 &&
                 options.micro_batches == options.ranks.size() && programs == 1) {}

  // Plans the sums of the gradients of the weights of programs[0], which must have all weights.
  absl::Status PlanSums(absl::Span<const TrainingProgram> programs, const Optimizer& optimizer) {
    const Tape& tape = *programs[0].tape;
    for (const ParameterSpec& spec : tape.program().parameters) {
      if (spec.kind == ParameterKind::kWeight) update_.tape.Parameter(spec.name, spec.type, spec.initializer);
    }
    weights_ = optimizer.TrainedWeights(&update_.tape);
    WEFT_RETURN_IF_ERROR(update_.tape.status());
    if (weights_.empty()) return InvalidArgument("the model has no weights to train");
    WEFT_ASSIGN_OR_RETURN(sums_, GradientSums::Plan(options_, streams_));
    std::vector<std::string> names;
    std::vector<TensorType> types;
    for (Var weight : weights_) {
      names.push_back(update_.tape.ParameterName(weight));
      types.push_back(weight.type());
    }
    PlanDivision(names, types);
    std::optional<LateRows> late;
    // Late rows keep the first part of the table's gradient for longer, but these two kinds of sharding save memory.
    // With kWeights they would also reorder the buckets of gradients, between which the gathers have their places.
    if (options_.sharding == Sharding::kNone || options_.sharding == Sharding::kOptimizer) {
      late = LateRows::Find(programs, names, types, options_.ranks, options_.bucket_bytes);
    }
    sums_->SetWeights(std::move(names), std::move(types));
    if (late) sums_->SetLateRows(*late);
    buffers_ = sums_->buffers();
    for (const ParameterSpec& buffer : buffers_) planned_bytes_ += buffer.type.bytes();
    return absl::OkStatus();
  }

  // Records the sum of the gradients of one program's micro-batch.
  absl::Status AddProgram(const TrainingProgram& program, const Optimizer& optimizer) {
    Tape* const tape = program.tape;
    Entry& entry = entries_.emplace_back();
    entry.tape = tape;
    entry.loss = program.loss;
    entry.targets = tape->Input("targets_of_batch", {kF32, {}});
    entry.first = tape->Input("first_of_pair", {kI32, {}}, {.below = 2});
    const VarList weights = optimizer.TrainedWeights(tape);
    // The gradient of a mean loss times its number of targets is the gradient of the summed loss.
    const Var loss = program.loss * Cast(entry.targets, program.loss.dtype());
    const std::optional<LateRows>& late = sums_->late_rows();
    entry.gradients = late ? late->Gradients(loss, weights, &entry.split) : Gradient(loss, weights);
    for (size_t i = 0; i < weights.size(); ++i) {
      entry.names.push_back(tape->ParameterName(weights[i]));
      entry.sums.push_back(sums_->Add(entry.names.back(), entry.gradients[i], entry.first));
    }
    if (!RunsAlone()) return absl::OkStatus();
    CompileOptions compile = {.fetch = {program.loss}, .update = {tape->Group(entry.sums)}};
    return AddGathers(*tape, compile);
  }

  // Records the graphs that add sums, and the update.
  absl::Status AddUpdate(const Optimizer& optimizer) {
    if (sums_->several_ranks()) WEFT_RETURN_IF_ERROR(AddReductions());
    if (plan().slots > 1) {  // with two micro-batches, nothing is added
      size_t adds = 0;
      for (const SumPlan::Pair& pair : plan().pairs) adds += pair.adds.size();
      const VarList added = sums_->AddSlots(&adding_.tape);
      WEFT_RETURN_IF_ERROR(AddGraph(adding_.tape, {.update = {adding_.tape.Group(added)}}, static_cast<double>(adds)));
    }
    if (const VarList cleared = sums_->Clear(&clearing_.tape); !cleared.empty()) {
      WEFT_RETURN_IF_ERROR(AddGraph(clearing_.tape, {.update = {clearing_.tape.Group(cleared)}}));
      clears_ = true;
    }
    Tape* const to = &update_.tape;
    update_.rate = to->Input("learning_rate", {kF32, {}});
    update_.targets = to->Input("targets_of_step", {kF32, {}});
    const Minimized step = sums_->Update(optimizer, weights_, update_.rate, update_.targets,
                                         {.all_or_none = true, .average_decay = options_.ema});
    update_.gradient_norm = step.gradient_norm;
    return AddGraph(*to, {.fetch = {step.gradient_norm}, .update = {step.update}}, /*runs=*/1);
  }

  absl::Status Allocate(Parameters* parameters) override {
    parameters_ = parameters;
    WEFT_RETURN_IF_ERROR(parameters->Create(buffers_));
    WEFT_RETURN_IF_ERROR(CreatePieces());
    size_t next = 0;
    for (Entry& entry : entries_) {
      if (!RunsAlone()) break;
      WEFT_ASSIGN_OR_RETURN(entry.sum.runner, MakeRunner(next++));
    }
    if (sums_->several_ranks()) {
      const auto in_last = [this](int slot) { return InLast(slot); };
      for (Entry& entry : entries_) {
        if (separate()) break;
        WEFT_ASSIGN_OR_RETURN(entry.last, MakeRunner(next++));
        WEFT_RETURN_IF_ERROR(entry.last->UseParameters(sums_->SlotNames(sums_->ReducedSlots(), in_last)));
      }
      WEFT_ASSIGN_OR_RETURN(reducing_.sum.runner, MakeRunner(next++));
    }
    if (separate()) {
      WEFT_ASSIGN_OR_RETURN(gathering_.sum.runner, MakeRunner(next++));
    }
    if (plan().slots > 1) {
      WEFT_ASSIGN_OR_RETURN(adding_.sum.runner, MakeRunner(next++));
    }
    if (clears_) {
      WEFT_ASSIGN_OR_RETURN(clearing_.sum.runner, MakeRunner(next++));
    }
    WEFT_ASSIGN_OR_RETURN(update_.runner, MakeRunner(next++));
    return absl::OkStatus();
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
        if (separate() && mine.back().targets == 0) WEFT_RETURN_IF_ERROR(gathering_.sum.runner->Run({}).status());
      }
      if (empty && clears_) {
        WEFT_RETURN_IF_ERROR(Use({pair.slot}, &clearing_.sum));
        WEFT_RETURN_IF_ERROR(clearing_.sum.runner->Run({}).status());
      }
      for (const auto& [into, from] : pair.adds) {
        WEFT_RETURN_IF_ERROR(Use({into, from}, &adding_.sum));
        WEFT_RETURN_IF_ERROR(adding_.sum.runner->Run({}).status());
      }
    }
    for (int64_t i = sums_->mine().size(); separate() && i < rounds(); ++i) {
      WEFT_RETURN_IF_ERROR(gathering_.sum.runner->Run({}).status());
    }
    if (sums_->several_ranks() && (separate() || mine.back().targets == 0)) {
      WEFT_RETURN_IF_ERROR(reducing_.sum.runner->Run({}).status());
    }
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
    WEFT_ASSIGN_OR_RETURN(const Outputs outputs, update_.runner->Run({{update_.rate, static_cast<float>(rate)},
                                                                      {update_.targets, static_cast<float>(targets)}}));
    if (!failed.ok()) return failed;  // only now, because the update may have messages, too
    parameters_->set_step(static_cast<uint32_t>((step + 1) * count));
    result.gradient_norm = outputs.Scalar(update_.gradient_norm);
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
      VarList values = entry.gradients;
      values.push_back(entry.loss);
      parameters_->set_step(static_cast<uint32_t>(step * options_.micro_batches + i));
      first = FirstNanOf(*entry.tape, values, batch->feeds);
    }
    return first;
  }

 private:
  static constexpr int32_t kFlags[] = {0, 1};

  // A program that adds the gradients of a micro-batch to a slot.
  struct Entry {
    const Tape* tape = nullptr;
    Var loss, targets, first;
    std::vector<std::string> names;  // of its trained weights
    VarList gradients, sums;         // by weight; each sum is the new version of its buffer in slot 0
    SplitGradient split;             // with late rows
    SlotRunner sum;
    std::unique_ptr<Runner> last;  // with several ranks: also adds the gradients of all ranks
  };
  // A graph on slots alone.
  struct SlotGraph {
    Tape tape;
    SlotRunner sum;
  };
  struct Update {
    Tape tape;
    Var rate, targets, gradient_norm;
    std::unique_ptr<Runner> runner;
  };

  // The graph of a last micro-batch is recorded on slot 0, like that of any micro-batch. So slot 0 and the slot of the
  // last pair change places in it. Returns the slot that stands for `slot` in this graph. The function is its own
  // inverse.
  int InLast(int slot) const { return slot == 0 ? plan().left[0] : slot == plan().left[0] ? 0 : slot; }

  // Runs one micro-batch, which adds its gradients to `slot`, and returns its figures. `first`: whether the gradients
  // replace the slot's content. `reduces`: whether the graph then also adds the gradients of all ranks.
  absl::StatusOr<MicroBatchResult> RunMicroBatch(int slot, bool first, bool reduces,
                                                 absl::StatusOr<TrainingBatch> batch) {
    WEFT_RETURN_IF_ERROR(batch.status());
    if (batch->targets == 0) return MicroBatchResult{};
    Entry& entry = entries_[batch->program];
    if (!reduces) WEFT_RETURN_IF_ERROR(Use({slot}, &entry.sum));
    Runner* const runner = reduces ? entry.last.get() : entry.sum.runner.get();
    batch->feeds.push_back({entry.targets, static_cast<float>(batch->targets)});
    batch->feeds.push_back({entry.first, absl::Span<const int32_t>(&kFlags[first ? 1 : 0], 1)});
    WEFT_ASSIGN_OR_RETURN(const Outputs outputs, runner->Run(batch->feeds));
    const auto targets = static_cast<double>(batch->targets);
    return MicroBatchResult{outputs.Scalar(entry.loss) * targets, targets, static_cast<double>(batch->tokens)};
  }

  // Records the graphs that add the gradients of all ranks: one for each program, and one for a rank whose last
  // micro-batch is empty.
  absl::Status AddReductions() {
    for (Entry& entry : entries_) {
      if (separate()) break;
      Tape* const tape = entry.loss.tape;
      const auto in_last = [this](int slot) { return InLast(slot); };
      const VarList updates = sums_->Reduce(tape, entry.names, entry.sums, in_last, entry.split, entry.first);
      WEFT_RETURN_IF_ERROR(AddGathers(*tape, {.fetch = {entry.loss}, .update = {tape->Group(updates)}},
                                      /*runs=*/1.0 / static_cast<double>(entries_.size())));
    }
    const VarList updates = sums_->ReduceWithoutGradients(&reducing_.tape);
    const CompileOptions compile = {.update = {reducing_.tape.Group(updates)}};
    if (!separate()) return AddGathers(reducing_.tape, compile);
    WEFT_RETURN_IF_ERROR(AddGraph(reducing_.tape, compile, /*runs=*/1));
    const VarList gathered = gathers_->Record(&gathering_.tape);
    return AddGraph(gathering_.tape, {.update = {gathering_.tape.Group(gathered)}});
  }

  // Adds a graph like AddGraph. If weights are divided, the graph gathers them.
  absl::Status AddGathers(const Tape& tape, CompileOptions compile, double runs = 0) {
    if (gathers_) {
      compile.distribute = [this](Program* to, std::vector<ValueId>* roots) { return gathers_->Insert(to, roots); };
    }
    return AddGraph(tape, std::move(compile), runs);
  }

  // Plans the pieces of each weight if the ranks divide the weights among themselves.
  void PlanDivision(const std::vector<std::string>& names, const std::vector<TensorType>& types) {
    if (options_.sharding != Sharding::kWeights) return;
    for (size_t i = 0; i < names.size(); ++i) {
      const Program& program = update_.tape.program();
      std::vector<WeightPiece> pieces = sums_->Pieces(types[i]);
      if (pieces.empty()) continue;
      divided_.push_back({.name = names[i],
                          .type = types[i],
                          .initializer = program.parameter(program.producer(weights_[i].id)).initializer,
                          .pieces = std::move(pieces)});
    }
    if (divided_.empty()) return;
    gathers_.emplace(divided_, options_.ranks.rank(), options_.ranks.size(),
                     [this](int tag) { return sums_->BucketOf(tag); });
  }

  // Creates this rank's pieces of the divided weights, with their initial values.
  absl::Status CreatePieces() {
    for (const DividedWeight& weight : divided_) {
      std::vector<ParameterPiece> mine;
      for (const WeightPiece& piece : weight.pieces) {
        if (piece.owner != options_.ranks.rank()) continue;
        mine.push_back({PieceName(weight.name, piece.rows), piece.rows.begin, piece.rows.end});
      }
      WEFT_RETURN_IF_ERROR(parameters_->CreatePieces({weight.name, weight.type, weight.initializer}, mine));
    }
    return absl::OkStatus();
  }

  // Reports whether a graph of its own adds the gradients of all ranks, because weights are divided. Messages need one
  // order on all ranks. If a rank has several micro-batches, or a step several programs, the graph of a micro-batch
  // thus gathers weights only. Otherwise all ranks run the same graph, in which gradients leave between the gathers.
  bool separate() const { return gathers_.has_value() && !streams_; }
  // Reports whether a graph runs a micro-batch without adding the gradients of all ranks.
  bool RunsAlone() const { return separate() || !sums_->has_only_last(); }
  // Returns the maximum number of micro-batches of a rank. In each of these rounds, all ranks gather weights.
  int64_t rounds() const { return RowsOf({0, options_.ranks.size()}, options_.micro_batches).size(); }

  // Makes `graph` use slots[i] in place of slot i.
  absl::Status Use(const std::vector<int>& slots, SlotRunner* graph) const {
    if (slots == graph->slots) return absl::OkStatus();
    graph->slots = slots;
    std::vector<int> order(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) order[i] = static_cast<int>(i);
    return graph->runner->UseParameters(sums_->SlotNames(
        slots, [&](int slot) { return order[static_cast<size_t>(absl::c_find(slots, slot) - slots.begin())]; }));
  }

  const SumPlan& plan() const { return sums_->plan(); }

  std::optional<GradientSums> sums_;  // set by PlanSums
  VarList weights_;                   // the trained weights on the update's tape
  std::vector<Entry> entries_;        // of each program
  SlotGraph reducing_, adding_, clearing_;
  const bool streams_;                    // see separate()
  std::optional<WeightGathers> gathers_;  // of the divided weights; nullopt if there are none
  SlotGraph gathering_;                   // gathers weights without using them
  bool clears_ = false;                   // whether clearing_ has a graph
  Update update_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingStep>> TrainingStep::PlanAccumulated(absl::Span<const TrainingProgram> programs,
                                                                            const Optimizer& optimizer,
                                                                            const StepOptions& options) {
  auto step = std::make_unique<AccumulatedStep>(options, programs.size());
  WEFT_RETURN_IF_ERROR(step->PlanSums(programs, optimizer));
  for (const TrainingProgram& program : programs) WEFT_RETURN_IF_ERROR(step->AddProgram(program, optimizer));
  WEFT_RETURN_IF_ERROR(step->AddUpdate(optimizer));
  return step;
}

}  // namespace weft
