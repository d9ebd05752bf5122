// Sums of gradients stand in buffers, which train/sum_plan.h assigns. The update's graph adds the last of them. Buffers
// are caches: no checkpoint has them, because they hold nothing between two steps.
//
// With several ranks, the graph of a rank's last micro-batch also adds the gradients of all ranks. Its messages leave
// as soon as their gradients are there, during the backward pass.
#include "weft/train/accumulated_step.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/core/status.h"
#include "weft/distributed/all_reduce.h"
#include "weft/train/micro_batch_results.h"
#include "weft/train/sum_plan.h"

namespace weft {
namespace {

std::string BufferName(int slot, absl::string_view weight) { return absl::StrCat("gradient_sum.", slot, ".", weight); }

// Returns the buffer of `slot` for the weight `name`.
Var Buffer(Tape* tape, int slot, absl::string_view name, const TensorType& type) {
  return tape->State(BufferName(slot, name), type, Zeros(), ParameterKind::kCache);
}

// A graph that is recorded on slot 0, or on slots 0 and 1, and runs on any slots.
struct SlotRunner {
  std::unique_ptr<Runner> runner;
  std::vector<int> slots;  // slots[i]: the slot that it uses in place of slot i
};

Var FirstInput(Tape* tape) { return tape->Input("first_of_pair", {kI32, {}}, {.below = 2}); }

class AccumulatedStep final : public TrainingStep {
 public:
  explicit AccumulatedStep(const StepOptions& options) : TrainingStep(options) {}

  // Plans which micro-batches this rank runs, and where it adds their gradients.
  absl::Status PlanRank() {
    const Ranks& ranks = options_.ranks;
    std::vector<MicroBatchRange> ranges;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const RowRange rows = RowsOf({rank, ranks.size()}, options_.micro_batches);
      ranges.push_back({rows.begin, rows.end});
    }
    mine_ = ranges[static_cast<size_t>(ranks.rank())];
    WEFT_ASSIGN_OR_RETURN(reduce_, AllReduce::Create(ranges, ranks.rank(), options_.bucket_bytes));
    plan_ = PlanSums(reduce_->blocks());
    return absl::OkStatus();
  }

  // Records the sum of the gradients of one program's micro-batch.
  absl::Status AddProgram(const TrainingProgram& program, const Optimizer& optimizer) {
    Tape* const tape = program.tape;
    Entry& entry = entries_.emplace_back();
    entry.tape = tape;
    entry.loss = program.loss;
    entry.targets = tape->Input("targets_of_batch", {kF32, {}});
    entry.first = FirstInput(tape);
    const VarList weights = optimizer.TrainedWeights(tape);
    // The gradient of a mean loss times its number of targets is the gradient of the summed loss.
    entry.gradients = Gradient(program.loss * Cast(entry.targets, program.loss.dtype()), weights);
    for (size_t i = 0; i < weights.size(); ++i) {
      entry.names.push_back(tape->ParameterName(weights[i]));
      const Var buffer = Buffer(tape, 0, entry.names.back(), SumType(weights[i].type()));
      entry.sums.push_back(Accumulate(buffer, entry.gradients[i], entry.first));
    }
    if (entry.sums.empty()) return InvalidArgument("the model has no weights to train");
    if (has_only_last()) return absl::OkStatus();
    return AddGraph(*tape, {.fetch = {program.loss}, .update = {tape->Group(entry.sums)}});
  }

  // Records the graphs that add sums, and the update. `tape`: a tape that has all weights.
  absl::Status AddUpdate(const Tape& tape, const Optimizer& optimizer) {
    for (const ParameterSpec& spec : tape.program().parameters) {
      if (spec.kind == ParameterKind::kWeight) update_.tape.Parameter(spec.name, spec.type, spec.initializer);
    }
    const VarList weights = optimizer.TrainedWeights(&update_.tape);
    for (Var weight : weights) {
      names_.push_back(update_.tape.ParameterName(weight));
      for (int slot = 0; slot < plan_.slots; ++slot) {
        const TensorType type = SumType(weight.type());
        buffers_.push_back({BufferName(slot, names_.back()), type, Zeros(), ParameterKind::kCache});
        planned_bytes_ += type.bytes();
      }
    }
    if (several_ranks()) WEFT_RETURN_IF_ERROR(AddReductions(weights));
    WEFT_RETURN_IF_ERROR(AddAdding(weights));
    WEFT_RETURN_IF_ERROR(AddClearing(weights));
    Tape* const to = &update_.tape;
    const Var rate = to->Input("learning_rate", {kF32, {}});
    const Var targets = to->Input("targets_of_step", {kF32, {}});
    VarList gradients;
    for (size_t i = 0; i < weights.size(); ++i) {
      const TensorType type = SumType(weights[i].type());
      const Var newest = Buffer(to, plan_.left[0], names_[i], type);
      Var sum = newest;
      for (size_t k = 1; k < plan_.left.size() && !several_ranks(); ++k) {
        sum = Buffer(to, plan_.left[k], names_[i], type) + sum;
      }
      const Var gradient = Cast(sum, weights[i].dtype()) / Cast(targets, weights[i].dtype());
      gradients.push_back(gradient.type() == type ? Assign(newest, gradient) : gradient);
    }
    const Minimized step =
        optimizer.Update(weights, gradients, rate, {.all_or_none = true, .average_decay = options_.average_decay});
    update_.rate = rate;
    update_.targets = targets;
    update_.gradient_norm = step.gradient_norm;
    return AddGraph(*to, {.fetch = {step.gradient_norm}, .update = {step.update}}, /*runs=*/1);
  }

  absl::Status Allocate(Parameters* parameters) override {
    parameters_ = parameters;
    WEFT_RETURN_IF_ERROR(parameters->Create(buffers_));
    size_t next = 0;
    for (Entry& entry : entries_) {
      if (has_only_last()) break;
      WEFT_ASSIGN_OR_RETURN(entry.sum.runner, MakeRunner(next++));
    }
    if (several_ranks()) {
      for (Entry& entry : entries_) {
        WEFT_ASSIGN_OR_RETURN(entry.last, MakeRunner(next++));
        WEFT_RETURN_IF_ERROR(entry.last->UseParameters(SlotNames([this](int slot) { return InLast(slot); })));
      }
      WEFT_ASSIGN_OR_RETURN(reducing_.sum.runner, MakeRunner(next++));
    }
    if (plan_.slots > 1) {
      WEFT_ASSIGN_OR_RETURN(adding_.sum.runner, MakeRunner(next++));
    }
    WEFT_ASSIGN_OR_RETURN(clearing_.sum.runner, MakeRunner(next++));
    WEFT_ASSIGN_OR_RETURN(update_.runner, MakeRunner(next++));
    return absl::OkStatus();
  }

  absl::StatusOr<StepResult> Run(int64_t step, double rate, NextBatch next, double loss_limit) override {
    const int64_t count = options_.micro_batches;
    std::vector<MicroBatchResult> mine;
    for (const SumPlan::Pair& pair : plan_.pairs) {
      bool empty = true;  // whether the pair has no gradients yet
      for (int64_t i = pair.begin; i < pair.end; ++i) {
        WEFT_ASSIGN_OR_RETURN(TrainingBatch batch, next({i, count}));
        parameters_->set_step(static_cast<uint32_t>(step * count + i));
        const bool reduces = several_ranks() && i + 1 == mine_.end;
        WEFT_ASSIGN_OR_RETURN(mine.emplace_back(), RunMicroBatch(pair.slot, empty, reduces, &batch));
        empty = empty && batch.targets == 0;
      }
      if (empty) {
        WEFT_RETURN_IF_ERROR(Use({pair.slot}, &clearing_.sum));
        WEFT_RETURN_IF_ERROR(clearing_.sum.runner->Run({}).status());
      }
      for (const auto& [into, from] : pair.adds) {
        WEFT_RETURN_IF_ERROR(Use({into, from}, &adding_.sum));
        WEFT_RETURN_IF_ERROR(adding_.sum.runner->Run({}).status());
      }
    }
    if (several_ranks() && mine.back().targets == 0) WEFT_RETURN_IF_ERROR(reducing_.sum.runner->Run({}).status());
    parameters_->set_step(static_cast<uint32_t>((step + 1) * count));
    const std::vector<MicroBatchResult> all = GatherResults(options_.ranks, mine);
    const double targets = TreeSum(all, &MicroBatchResult::targets);
    if (targets == 0) return InvalidArgument("the batch of step ", step, " has no targets");
    StepResult result = {.loss = TreeSum(all, &MicroBatchResult::loss) / targets,
                         .gradient_norm = std::numeric_limits<double>::quiet_NaN(),
                         .tokens = static_cast<int64_t>(TreeSum(all, &MicroBatchResult::tokens))};
    if (!std::isfinite(result.loss) || (options_.limits_loss && result.loss > loss_limit)) return result;
    WEFT_ASSIGN_OR_RETURN(const Outputs outputs, update_.runner->Run({{update_.rate, static_cast<float>(rate)},
                                                                      {update_.targets, static_cast<float>(targets)}}));
    parameters_->set_step(static_cast<uint32_t>((step + 1) * count));
    result.gradient_norm = outputs.Scalar(update_.gradient_norm);
    result.updated = std::isfinite(result.gradient_norm);
    return result;
  }

  std::string FirstNan(int64_t step, NextBatch next) override {
    std::string first;
    for (int64_t i = mine_.begin; i < mine_.end && first.empty(); ++i) {
      absl::StatusOr<TrainingBatch> batch = next({i, options_.micro_batches});
      if (!batch.ok() || batch->targets == 0) continue;
      const Entry& entry = entries_[batch->program];
      batch->feeds.push_back({entry.targets, static_cast<float>(batch->targets)});
      VarList values = entry.gradients;
      values.push_back(entry.loss);
      parameters_->set_step(static_cast<uint32_t>(step * options_.micro_batches + i));
      first = weft::FirstNan(*entry.tape, values, batch->feeds, options_, parameters_);
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

  // Returns the type of the sums of gradients for a weight.
  TensorType SumType(const TensorType& weight) const {
    return {weight.dtype == kF32 ? options_.sums : weight.dtype, weight.shape};
  }
  bool several_ranks() const { return options_.ranks.size() > 1; }
  // Reports whether each micro-batch of this rank is its last one.
  bool has_only_last() const { return several_ranks() && mine_.size() == 1; }
  // The graphs of last micro-batches are recorded on slot 0, like those of all micro-batches. So in them slot 0 and the
  // slot of the last pair change places. Returns the slot that stands for `slot` there, and the other way round.
  int InLast(int slot) const { return slot == 0 ? plan_.left[0] : slot == plan_.left[0] ? 0 : slot; }

  // Runs one micro-batch, which adds its gradients to `slot`, and returns its figures. `first`: it replaces the slot's
  // content. `reduces`: the gradients of all ranks are then added, too.
  absl::StatusOr<MicroBatchResult> RunMicroBatch(int slot, bool first, bool reduces, TrainingBatch* batch) {
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

  // Records, after the last micro-batch, the sums of the last block and of all ranks. `newest`: the newest sum of each
  // weight of `names`. `slot_of`: maps slots of the plan to those of the graph. Returns the updates.
  VarList RecordReduction(Tape* tape, const std::vector<std::string>& names, const VarList& newest,
                          absl::FunctionRef<int(int)> slot_of) const {
    absl::flat_hash_map<std::string, Var> by_name;
    for (size_t i = 0; i < names.size(); ++i) by_name[names[i]] = newest[i];
    std::vector<AllReduce::Blocks> weights;
    for (auto name = names_.rbegin(); name != names_.rend(); ++name) {  // the last layers have their gradients first
      Var sum = by_name[*name];
      const auto buffer = [&](int slot) { return Buffer(tape, slot_of(slot), *name, sum.type()); };
      for (size_t k = 1; k < plan_.left.size(); ++k) sum = Assign(sum, buffer(plan_.left[k]) + sum);
      AllReduce::Blocks& blocks = weights.emplace_back();
      for (const int slot : plan_.blocks) blocks.push_back(buffer(slot));
      blocks.push_back(sum);
    }
    VarList updates;
    reduce_->Record(weights, &updates);
    return updates;
  }

  // Records the graphs that add the gradients of all ranks: one for each program, and one for a rank whose last
  // micro-batch is empty.
  absl::Status AddReductions(const VarList& weights) {
    for (Entry& entry : entries_) {
      Tape* const tape = entry.loss.tape;
      const VarList updates = RecordReduction(tape, entry.names, entry.sums, [this](int slot) { return InLast(slot); });
      WEFT_RETURN_IF_ERROR(AddGraph(*tape, {.fetch = {entry.loss}, .update = {tape->Group(updates)}},
                                    /*runs=*/1.0 / static_cast<double>(entries_.size())));
    }
    VarList newest;
    for (size_t i = 0; i < weights.size(); ++i) {
      newest.push_back(Buffer(&reducing_.tape, plan_.left[0], names_[i], SumType(weights[i].type())));
    }
    const VarList updates = RecordReduction(&reducing_.tape, names_, newest, [](int slot) { return slot; });
    return AddGraph(reducing_.tape, {.update = {reducing_.tape.Group(updates)}});
  }

  // Records the graph that adds one slot to another.
  absl::Status AddAdding(const VarList& weights) {
    VarList sums;
    for (size_t i = 0; i < weights.size(); ++i) {
      const TensorType type = SumType(weights[i].type());
      const Var into = Buffer(&adding_.tape, 0, names_[i], type);
      sums.push_back(Assign(into, into + Buffer(&adding_.tape, 1, names_[i], type)));
    }
    if (plan_.slots < 2) return absl::OkStatus();  // with two micro-batches, nothing is added
    size_t adds = 0;
    for (const SumPlan::Pair& pair : plan_.pairs) adds += pair.adds.size();
    return AddGraph(adding_.tape, {.update = {adding_.tape.Group(sums)}}, static_cast<double>(adds));
  }

  // Records the graph that sets a slot to 0, for a pair of empty micro-batches.
  absl::Status AddClearing(const VarList& weights) {
    VarList cleared;
    for (size_t i = 0; i < weights.size(); ++i) {
      const Var buffer = Buffer(&clearing_.tape, 0, names_[i], SumType(weights[i].type()));
      cleared.push_back(Assign(buffer, FillLike(buffer, 0)));
    }
    return AddGraph(clearing_.tape, {.update = {clearing_.tape.Group(cleared)}});
  }

  // Returns, for the slots that RecordReduction uses, pairs of names of buffers: those of slot `recorded(slot)`, and
  // those of `slot` that replace them.
  std::vector<std::pair<std::string, std::string>> SlotNames(absl::FunctionRef<int(int)> recorded) const {
    std::vector<std::pair<std::string, std::string>> names;
    for (const std::string& name : names_) {
      for (const std::vector<int>* slots : {&plan_.blocks, &plan_.left}) {
        for (const int slot : *slots) names.emplace_back(BufferName(recorded(slot), name), BufferName(slot, name));
      }
    }
    return names;
  }

  // Makes `graph` use slots[i] in place of slot i.
  absl::Status Use(const std::vector<int>& slots, SlotRunner* graph) const {
    if (slots == graph->slots) return absl::OkStatus();
    std::vector<std::pair<std::string, std::string>> names;
    for (const std::string& name : names_) {
      for (size_t i = 0; i < slots.size(); ++i) {
        names.emplace_back(BufferName(static_cast<int>(i), name), BufferName(slots[i], name));
      }
    }
    graph->slots = slots;
    return graph->runner->UseParameters(names);
  }

  MicroBatchRange mine_;             // this rank's micro-batches
  std::optional<AllReduce> reduce_;  // set by PlanRank
  SumPlan plan_;
  std::vector<Entry> entries_;  // of each program
  SlotGraph reducing_, adding_, clearing_;
  Update update_;
  std::vector<std::string> names_;  // of the trained weights
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingStep>> PlanAccumulatedStep(absl::Span<const TrainingProgram> programs,
                                                                  const Optimizer& optimizer,
                                                                  const StepOptions& options) {
  auto step = std::make_unique<AccumulatedStep>(options);
  WEFT_RETURN_IF_ERROR(step->PlanRank());
  for (const TrainingProgram& program : programs) WEFT_RETURN_IF_ERROR(step->AddProgram(program, optimizer));
  WEFT_RETURN_IF_ERROR(step->AddUpdate(*programs[0].tape, optimizer));
  return step;
}

}  // namespace weft
