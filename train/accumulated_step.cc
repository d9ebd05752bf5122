// The sums of gradients are buffers, one for each trained weight and level of the tree. Level 0 adds neighbouring
// micro-batches: 0 and 1, then 2 and 3. When a pair is complete, its sum moves to level 1, which adds neighbouring
// pairs, and so on, as a binary counter carries. The last pair does not move: the graph of the update adds the buffers
// that are in use then, from level 0 upwards. So M micro-batches need log2(M) levels, rounded up.
//
// Buffers are caches. They are not saved, because they hold nothing between two steps.
#include "weft/train/accumulated_step.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"

namespace weft {
namespace {

// Returns the number of pairs of micro-batches that have moved to level 1 before the update: all except the last.
int64_t MovedPairs(int64_t micro_batches) { return (micro_batches - 1) / 2; }

// Returns the number of levels that hold sums of `micro_batches` micro-batches.
int Levels(int64_t micro_batches) { return 1 + std::bit_width(static_cast<uint64_t>(MovedPairs(micro_batches))); }

// Returns the buffer of `level` for the weight `name`.
Var SumBuffer(Tape* tape, int level, const std::string& name, const TensorType& type) {
  return tape->State(absl::StrCat("gradient_sum.", level, ".", name), type, Zeros(), ParameterKind::kCache);
}

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
  AccumulatedStep(const StepOptions& options, Parameters* parameters) : options_(options), parameters_(parameters) {}

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
      const Var buffer = SumBuffer(tape, 0, tape->ParameterName(weights[i]), weights[i].type());
      sums.push_back(AddTo(buffer, entry.first, entry.gradients[i]));
    }
    if (sums.empty()) return InvalidArgument("the model has no weights to train");
    WEFT_ASSIGN_OR_RETURN(entry.runner, StepRunner(*tape, {.fetch = {program.loss}, .update = {tape->Group(sums)}},
                                                   options_, parameters_, &planned_bytes_));
    return absl::OkStatus();
  }

  // Records the graphs that move sums up, and the update. `tape`: a tape that has all weights.
  absl::Status AddUpdate(const Tape& tape, const Optimizer& optimizer) {
    for (const ParameterSpec& spec : tape.program().parameters) {
      if (spec.kind == ParameterKind::kWeight) update_.tape.Parameter(spec.name, spec.type, spec.initializer);
    }
    const VarList weights = optimizer.TrainedWeights(&update_.tape);
    for (int level = 0; level + 1 < Levels(options_.micro_batches); ++level) {
      WEFT_RETURN_IF_ERROR(AddMove(level, weights));
    }
    WEFT_RETURN_IF_ERROR(AddClearing(weights));
    for (Var weight : weights) {
      planned_bytes_ += static_cast<uint64_t>(Levels(options_.micro_batches)) * weight.type().bytes();
    }
    Tape* const to = &update_.tape;
    const Var rate = to->Input("learning_rate", {kF32, {}});
    const Var targets = to->Input("targets_of_step", {kF32, {}});
    VarList gradients;
    for (Var weight : weights) {
      const std::string name = to->ParameterName(weight);  // a copy: the states below move the tape's names
      const Var buffer = SumBuffer(to, 0, name, weight.type());
      Var sum = buffer;
      for (int level = 1; level < Levels(options_.micro_batches); ++level) {
        const bool used = (MovedPairs(options_.micro_batches) >> (level - 1) & 1) != 0;
        if (used) sum = SumBuffer(to, level, name, weight.type()) + sum;
      }
      gradients.push_back(Assign(buffer, sum / Cast(targets, weight.dtype())));
    }
    const Minimized step =
        optimizer.Update(weights, gradients, rate, {.all_or_none = true, .average_decay = options_.average_decay});
    update_.rate = rate;
    update_.targets = targets;
    update_.gradient_norm = step.gradient_norm;
    WEFT_ASSIGN_OR_RETURN(update_.runner, StepRunner(*to, {.fetch = {step.gradient_norm}, .update = {step.update}},
                                                     options_, parameters_, &planned_bytes_));
    return absl::OkStatus();
  }

  absl::StatusOr<StepResult> Run(int64_t step, double rate, NextBatch next, double loss_limit) override {
    const int64_t count = options_.micro_batches;
    std::vector<double> losses, targets;
    StepResult result;
    bool empty = true;  // whether the buffer of level 0 is free
    for (int64_t i = 0; i < count; ++i) {
      WEFT_ASSIGN_OR_RETURN(TrainingBatch batch, next({i, count}));
      targets.push_back(static_cast<double>(batch.targets));
      losses.push_back(0);
      if (batch.targets > 0) {
        const Entry& entry = entries_[batch.program];
        batch.feeds.push_back({entry.targets, static_cast<float>(batch.targets)});
        batch.feeds.push_back({entry.first, absl::Span<const int32_t>(&kFlags[empty ? 1 : 0], 1)});
        parameters_->set_step(static_cast<uint32_t>(step * count + i));
        WEFT_ASSIGN_OR_RETURN(const Outputs outputs, entry.runner->Run(batch.feeds));
        losses.back() = outputs.Scalar(entry.loss) * targets.back();
        result.tokens += batch.tokens;
        empty = false;
      }
      const bool pair_ends = i % 2 == 1 || i + 1 == count;
      if (!pair_ends) continue;
      if (empty) WEFT_RETURN_IF_ERROR(clearing_.runner->Run({}).status());
      if (i + 1 < count) WEFT_RETURN_IF_ERROR(MovePair(i / 2));
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

  // A program that adds the gradients of a micro-batch to the buffers of level 0.
  struct Entry {
    const Tape* tape = nullptr;
    Var loss, targets, first;
    VarList gradients;
    std::unique_ptr<Runner> runner;
  };
  // Adds the buffers of one level to those of the next.
  struct Move {
    Tape tape;
    Var first;
    std::unique_ptr<Runner> runner;
  };
  struct Update {
    Tape tape;
    Var rate, targets, gradient_norm;
    std::unique_ptr<Runner> runner;
  };

  absl::Status AddMove(int level, const VarList& weights) {
    Move& move = moves_.emplace_back();
    move.first = FirstInput(&move.tape);
    VarList sums;
    for (Var weight : weights) {
      const std::string& name = weight.tape->ParameterName(weight);
      const Var from = SumBuffer(&move.tape, level, name, weight.type());
      sums.push_back(AddTo(SumBuffer(&move.tape, level + 1, name, weight.type()), move.first, from));
    }
    WEFT_ASSIGN_OR_RETURN(move.runner, StepRunner(move.tape, {.update = {move.tape.Group(sums)}}, options_, parameters_,
                                                  &planned_bytes_));
    return absl::OkStatus();
  }

  // Records the graph that sets the buffers of level 0 to 0, for a pair of empty micro-batches.
  absl::Status AddClearing(const VarList& weights) {
    VarList cleared;
    for (Var weight : weights) {
      const Var buffer = SumBuffer(&clearing_.tape, 0, weight.tape->ParameterName(weight), weight.type());
      cleared.push_back(Assign(buffer, FillLike(buffer, 0)));
    }
    WEFT_ASSIGN_OR_RETURN(clearing_.runner, StepRunner(clearing_.tape, {.update = {clearing_.tape.Group(cleared)}},
                                                       options_, parameters_, &planned_bytes_));
    return absl::OkStatus();
  }

  // Moves the sum of pair `pair` up from level 0, to the first level that is free.
  absl::Status MovePair(int64_t pair) {
    for (size_t level = 0;; ++level) {
      const bool first = (pair >> level & 1) == 0;  // level + 1 holds a sum if this bit of the counter is set
      const Move& move = moves_[level];
      WEFT_RETURN_IF_ERROR(
          move.runner->Run({{move.first, absl::Span<const int32_t>(&kFlags[first ? 1 : 0], 1)}}).status());
      if (first) return absl::OkStatus();
    }
  }

  StepOptions options_;
  Parameters* parameters_;
  std::vector<Entry> entries_;  // of each program
  std::deque<Move> moves_;      // from each level to the next; tapes don't move
  Move clearing_;
  Update update_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingStep>> CreateAccumulatedStep(absl::Span<const TrainingProgram> programs,
                                                                    const Optimizer& optimizer,
                                                                    const StepOptions& options,
                                                                    Parameters* parameters) {
  auto step = std::make_unique<AccumulatedStep>(options, parameters);
  for (const TrainingProgram& program : programs) WEFT_RETURN_IF_ERROR(step->AddProgram(program, optimizer));
  WEFT_RETURN_IF_ERROR(step->AddUpdate(*programs[0].tape, optimizer));
  return step;
}

}  // namespace weft
