// A slot is a set of buffers, one for each trained weight, which holds one sum of gradients. The two micro-batches of a
// pair add their gradients in one free slot. Then neighbouring sums of equal size are added, as a binary counter
// carries, which frees a slot each time. The last pair is not added: the graph of the update adds all sums that are
// left, the newest first. So M micro-batches need at most log2(M) slots, rounded up, and no sum is ever copied.
//
// Buffers are caches. They are not saved, because they hold nothing between two steps.
#include "weft/train/accumulated_step.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/core/status.h"

namespace weft {
namespace {

// The slots of a step, which depend on its number of micro-batches only.
struct SumPlan {
  struct Add {
    int to, from;  // slot `to` ← slot `to` + slot `from`
  };
  struct Pair {
    int slot;               // in which its two micro-batches are added
    std::vector<Add> adds;  // which follow
  };
  std::vector<Pair> pairs;
  std::vector<int> left;  // slots of the sums that the update adds, the newest first
  int slots = 0;
};

SumPlan PlanSums(int64_t micro_batches) {
  struct Sum {
    int slot, level;  // 2^level pairs
  };
  SumPlan plan;
  std::vector<Sum> sums;  // the oldest first, with falling levels
  std::vector<int> free;
  const int64_t pairs = (micro_batches + 1) / 2;
  for (int64_t i = 0; i < pairs; ++i) {
    if (free.empty()) free.push_back(plan.slots++);
    SumPlan::Pair& pair = plan.pairs.emplace_back(SumPlan::Pair{free.back(), {}});
    free.pop_back();
    Sum sum = {pair.slot, 0};
    while (i + 1 < pairs && !sums.empty() && sums.back().level == sum.level) {
      pair.adds.push_back({sums.back().slot, sum.slot});
      free.push_back(sum.slot);
      sum = {sums.back().slot, sum.level + 1};
      sums.pop_back();
    }
    sums.push_back(sum);
  }
  for (auto sum = sums.rbegin(); sum != sums.rend(); ++sum) plan.left.push_back(sum->slot);
  return plan;
}

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

// Records buffer ← value if `first` is 1, and buffer ← buffer + value if it is 0.
Var AddTo(Var buffer, Var first, Var value) {
  return Assign(buffer, MaskFill(buffer, Equal(first, FillLike(first, 1)), 0) + value);
}

Var FirstInput(Tape* tape) { return tape->Input("first_of_pair", {kI32, {}}, {.below = 2}); }

// Returns the sum of `values` in the order of the tree: neighbours first, then neighbouring pairs.
double TreeSum(std::vector<double> values) {
  while (values.size() > 1) {
    const size_t count = values.size();
    for (size_t i = 0; i < count; i += 2) values[i / 2] = i + 1 < count ? values[i] + values[i + 1] : values[i];
    values.resize((count + 1) / 2);
  }
  return values.empty() ? 0 : values[0];
}

class AccumulatedStep final : public TrainingStep {
 public:
  explicit AccumulatedStep(const StepOptions& options) : TrainingStep(options) {}

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
    VarList sums;
    for (size_t i = 0; i < weights.size(); ++i) {
      const Var buffer = Buffer(tape, 0, tape->ParameterName(weights[i]), weights[i].type());
      sums.push_back(AddTo(buffer, entry.first, entry.gradients[i]));
    }
    if (sums.empty()) return InvalidArgument("the model has no weights to train");
    return AddGraph(*tape, {.fetch = {program.loss}, .update = {tape->Group(sums)}});
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
        buffers_.push_back({BufferName(slot, names_.back()), weight.type(), Zeros(), ParameterKind::kCache});
        planned_bytes_ += weight.type().bytes();
      }
    }
    WEFT_RETURN_IF_ERROR(AddAdding(weights));
    WEFT_RETURN_IF_ERROR(AddClearing(weights));
    Tape* const to = &update_.tape;
    const Var rate = to->Input("learning_rate", {kF32, {}});
    const Var targets = to->Input("targets_of_step", {kF32, {}});
    VarList gradients;
    for (size_t i = 0; i < weights.size(); ++i) {
      const TensorType type = weights[i].type();
      const Var newest = Buffer(to, plan_.left[0], names_[i], type);
      Var sum = newest;
      for (size_t k = 1; k < plan_.left.size(); ++k) sum = Buffer(to, plan_.left[k], names_[i], type) + sum;
      gradients.push_back(Assign(newest, sum / Cast(targets, type.dtype)));
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
    size_t next = 0;
    for (Entry& entry : entries_) {
      WEFT_ASSIGN_OR_RETURN(entry.sum.runner, MakeRunner(next++));
    }
    WEFT_RETURN_IF_ERROR(parameters->Create(buffers_));
    if (plan_.slots > 1) {
      WEFT_ASSIGN_OR_RETURN(adding_.sum.runner, MakeRunner(next++));
    }
    WEFT_ASSIGN_OR_RETURN(clearing_.sum.runner, MakeRunner(next++));
    WEFT_ASSIGN_OR_RETURN(update_.runner, MakeRunner(next++));
    return absl::OkStatus();
  }

  absl::StatusOr<StepResult> Run(int64_t step, double rate, NextBatch next, double loss_limit) override {
    const int64_t count = options_.micro_batches;
    std::vector<double> losses, targets;
    StepResult result;
    bool empty = true;  // whether the pair has no gradients yet
    for (int64_t i = 0; i < count; ++i) {
      WEFT_ASSIGN_OR_RETURN(TrainingBatch batch, next({i, count}));
      targets.push_back(static_cast<double>(batch.targets));
      losses.push_back(0);
      if (batch.targets > 0) {
        Entry& entry = entries_[batch.program];
        WEFT_RETURN_IF_ERROR(Use({plan_.pairs[static_cast<size_t>(i / 2)].slot}, &entry.sum));
        batch.feeds.push_back({entry.targets, static_cast<float>(batch.targets)});
        batch.feeds.push_back({entry.first, absl::Span<const int32_t>(&kFlags[empty ? 1 : 0], 1)});
        parameters_->set_step(static_cast<uint32_t>(step * count + i));
        WEFT_ASSIGN_OR_RETURN(const Outputs outputs, entry.sum.runner->Run(batch.feeds));
        losses.back() = outputs.Scalar(entry.loss) * targets.back();
        result.tokens += batch.tokens;
        empty = false;
      }
      const bool pair_ends = i % 2 == 1 || i + 1 == count;
      if (!pair_ends) continue;
      const SumPlan::Pair& pair = plan_.pairs[static_cast<size_t>(i / 2)];
      if (empty) {
        WEFT_RETURN_IF_ERROR(Use({pair.slot}, &clearing_.sum));
        WEFT_RETURN_IF_ERROR(clearing_.sum.runner->Run({}).status());
      }
      for (const auto& [into, from] : pair.adds) {
        WEFT_RETURN_IF_ERROR(Use({into, from}, &adding_.sum));
        WEFT_RETURN_IF_ERROR(adding_.sum.runner->Run({}).status());
      }
      empty = true;
    }
    parameters_->set_step(static_cast<uint32_t>((step + 1) * count));
    const double all_targets = TreeSum(targets);
    if (all_targets == 0) return InvalidArgument("the batch of step ", step, " has no targets");
    result.loss = TreeSum(losses) / all_targets;
    result.gradient_norm = std::numeric_limits<double>::quiet_NaN();
    if (!std::isfinite(result.loss) || (options_.limits_loss && result.loss > loss_limit)) return result;
    WEFT_ASSIGN_OR_RETURN(const Outputs outputs,
                          update_.runner->Run({{update_.rate, static_cast<float>(rate)},
                                               {update_.targets, static_cast<float>(all_targets)}}));
    parameters_->set_step(static_cast<uint32_t>((step + 1) * count));
    result.gradient_norm = outputs.Scalar(update_.gradient_norm);
    result.updated = std::isfinite(result.gradient_norm);
    return result;
  }

  std::string FirstNan(int64_t step, NextBatch next) override {
    std::string first;
    for (int64_t i = 0; i < options_.micro_batches && first.empty(); ++i) {
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
    VarList gradients;
    SlotRunner sum;
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

  // Records the graph that adds one slot to another.
  absl::Status AddAdding(const VarList& weights) {
    VarList sums;
    for (size_t i = 0; i < weights.size(); ++i) {
      const Var into = Buffer(&adding_.tape, 0, names_[i], weights[i].type());
      sums.push_back(Assign(into, into + Buffer(&adding_.tape, 1, names_[i], weights[i].type())));
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
      const Var buffer = Buffer(&clearing_.tape, 0, names_[i], weights[i].type());
      cleared.push_back(Assign(buffer, FillLike(buffer, 0)));
    }
    return AddGraph(clearing_.tape, {.update = {clearing_.tape.Group(cleared)}});
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

  std::vector<Entry> entries_;  // of each program
  SlotGraph adding_, clearing_;
  Update update_;
  SumPlan plan_ = PlanSums(options_.micro_batches);
  std::vector<std::string> names_;  // of the trained weights
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingStep>> PlanAccumulatedStep(absl::Span<const TrainingProgram> programs,
                                                                  const Optimizer& optimizer,
                                                                  const StepOptions& options) {
  auto step = std::make_unique<AccumulatedStep>(options);
  for (const TrainingProgram& program : programs) WEFT_RETURN_IF_ERROR(step->AddProgram(program, optimizer));
  WEFT_RETURN_IF_ERROR(step->AddUpdate(*programs[0].tape, optimizer));
  return step;
}

}  // namespace weft
