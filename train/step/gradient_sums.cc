#include "weft/train/step/gradient_sums.h"

#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/base/status.h"
#include "weft/distributed/message_ops.h"
#include "weft/distributed/ranks.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr char kLateRowsName[] = "gradient_sum.late_rows";

std::string SlotName(int slot, absl::string_view weight) { return absl::StrCat("gradient_sum.", slot, ".", weight); }
std::string PieceSumName(absl::string_view weight, IndexRange rows) {
  return absl::StrCat("gradient_sum.", PieceName(weight, rows));
}

Var Cache(Tape* tape, const std::string& name, const TensorType& type) {
  return tape->State(name, type, Zeros(), ParameterKind::kCache);
}

// Plans the sums of the blocks of a rank (ReductionPlan::blocks). Walks the micro-batches in order, with a stack of
// sums and a list of free slots.
SumPlan PlanSums(absl::Span<const IndexRange> blocks) {
  struct Sum {
    int slot, level;  // 2^level pairs
  };
  SumPlan plan;
  std::vector<Sum> sums;  // of the current block: the oldest first; levels decrease
  std::vector<int> free;
  for (const IndexRange& block : blocks) {
    for (const Sum& sum : sums) plan.blocks.push_back(sum.slot);
    sums.clear();
    for (int64_t i = block.begin; i < block.end; i += 2) {
      if (free.empty()) free.push_back(plan.slots++);
      SumPlan::Pair& pair = plan.pairs.emplace_back(SumPlan::Pair{i, std::min(i + 2, block.end), free.back(), {}});
      free.pop_back();
      Sum sum = {pair.slot, 0};
      // The last sums of the last block stay separate, so that the update can add them.
      const bool last = i + 2 >= block.end && &block == &blocks.back();
      while (!last && !sums.empty() && sums.back().level == sum.level) {
        pair.adds.push_back({sums.back().slot, sum.slot});
        free.push_back(sum.slot);
        sum = {sums.back().slot, sum.level + 1};
        sums.pop_back();
      }
      sums.push_back(sum);
    }
  }
  for (auto sum = sums.rbegin(); sum != sums.rend(); ++sum) plan.left.push_back(sum->slot);
  // The graph of the last micro-batch is recorded on slot 0. So slot 0 and the slot of the last pair change their
  // numbers.
  const int last = plan.left[0];
  const auto renumber = [last](int* slot) { *slot = *slot == 0 ? last : *slot == last ? 0 : *slot; };
  for (SumPlan::Pair& pair : plan.pairs) {
    renumber(&pair.slot);
    for (SumPlan::Add& add : pair.adds) {
      renumber(&add.to);
      renumber(&add.from);
    }
  }
  for (int& slot : plan.blocks) renumber(&slot);
  for (int& slot : plan.left) renumber(&slot);
  return plan;
}

}  // namespace

absl::StatusOr<GradientSums> GradientSums::Plan(const StepOptions& options, absl::Span<const TrainingProgram> programs,
                                                std::vector<std::string> names, std::vector<TensorType> types) {
  GradientSums sums;
  sums.options_ = options;
  sums.names_ = std::move(names);
  sums.types_ = std::move(types);
  const Ranks& ranks = options.ranks;
  std::vector<IndexRange> ranges;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    ranges.push_back(RowsOf({rank, ranks.size()}, options.micro_batches));
  }
  sums.mine_ = ranges[static_cast<size_t>(ranks.rank())];
  sums.streams_ = options.sharding == Sharding::kWeights && sums.several_ranks() &&
                  options.micro_batches == ranks.size() && programs.size() == 1;
  WEFT_ASSIGN_OR_RETURN(sums.reduce_, AllReduce::Create(ranges, ranks.rank(), options.bucket_bytes));
  sums.plan_ = PlanSums(sums.reduce_->blocks());
  // Late rows keep the first part of the table's gradient for longer, but the other two kinds of sharding save memory.
  // With kWeights they would also reorder the buckets of gradients, between which the gathers have their places.
  if (options.sharding == Sharding::kNone || options.sharding == Sharding::kOptimizer) {
    sums.FindLateRows(programs);
  }
  sums.ListBuffers();
  return sums;
}

void GradientSums::ListBuffers() {
  const auto add = [this](std::string name, const TensorType& type) {
    buffers_.push_back({std::move(name), type, Zeros(), ParameterKind::kCache});
  };
  for (size_t i = 0; i < names_.size(); ++i) {
    for (int slot = 0; slot < plan_.slots && HasSlots(i); ++slot) add(SlotName(slot, names_[i]), SumType(types_[i]));
    for (const WeightPiece& piece : Pieces(types_[i])) {
      if (piece.owner != options_.ranks.rank()) continue;
      add(PieceSumName(names_[i], piece.rows), SumType(PieceType(i, piece.rows)));
    }
  }
  if (late_) add(kLateRowsName, LateRowsType());
}

MicroBatchSums GradientSums::Add(Var loss, VarSpan weights, Var first) const {
  Tape* const tape = loss.tape;
  MicroBatchSums result = {.sums = VarList(names_.size()), .first = first};
  result.gradients = late_ ? Gradients(loss, weights, &result.split) : Gradient(loss, weights);
  for (size_t i = 0; i < weights.size() && tape->status().ok(); ++i) {
    const Var gradient = result.gradients[i];
    const auto index = static_cast<size_t>(absl::c_find(names_, tape->ParameterName(weights[i])) - names_.begin());
    // Without a slot, adds 0, because a slot would hold 0 + gradient, in which -0 becomes 0.
    result.sums[index] = HasSlots(index) ? Accumulate(Slot(tape, 0, index), gradient, first)
                                         : Cast(gradient + 0.0, SumType(gradient.type()).dtype);
  }
  return result;
}

VarList GradientSums::Reduce(Tape* tape, const MicroBatchSums& newest) const {
  VarList updates;
  Var ids;  // of the late rows
  std::vector<size_t> indices;
  if (late_) {  // the backward pass computes the first part of its gradient first, and then those of the last layers
    ids = GatherLateIds(tape, newest.split, &updates);
    indices.push_back(late_->weight);
  }
  for (size_t i = names_.size(); i-- > 0;) {
    if (!late_ || i != late_->weight) indices.push_back(i);
  }
  std::vector<AllReduce::Blocks> weights;
  AllReduce::Blocks late_blocks;
  for (const size_t i : indices) {
    const bool is_late = late_ && i == late_->weight;
    Var sum = newest.sums[i], late_sum;
    if (is_late) late_sum = LateSum(tape, ids, newest, &sum);
    for (size_t k = 1; k < plan_.left.size(); ++k) {
      const Var older = Slot(tape, plan_.left[k], i);
      sum = Assign(sum, older + sum);
      if (is_late) late_sum = Assign(late_sum, LateRowsOf(older, ids) + late_sum);
    }
    AllReduce::Blocks& blocks = weights.emplace_back();
    for (const int slot : plan_.blocks) {
      blocks.push_back(Slot(tape, slot, i));
      if (is_late) late_blocks.push_back(LateRowsOf(blocks.back(), ids));
    }
    blocks.push_back(sum);
    if (is_late) late_blocks.push_back(late_sum);
  }
  if (late_) weights.push_back(late_blocks);
  struct Total {
    size_t weight;
    Var state;          // the total of the weight, or of a piece
    int64_t begin = 0;  // its first row
  };
  std::vector<Total> totals;
  const auto keep = [&](size_t weight, const WeightPiece& piece, Var total) {
    const Var state = PieceSum(tape, indices[weight], piece);
    totals.push_back({indices[weight], Assign(state, Reshape(total, state.shape())), piece.rows.begin});
  };
  const AllReduce::KeepPiece keep_piece = keep;
  const VarList whole =
      reduce_->Record(weights, &updates, options_.sharding == Sharding::kNone ? nullptr : &keep_piece);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (whole[i]) totals.push_back({indices[i], whole[i]});
  }
  if (late_) updates.push_back(whole.back());  // other ranks send to this rank even if it owns no piece of the table
  for (const Total& total : totals) {
    if (!late_ || total.weight != late_->weight) {
      updates.push_back(total.state);
      continue;
    }
    const Var rows = Reshape(whole.back(), {late_->rows, types_[total.weight].shape.cols()});
    updates.push_back(WriteRows(total.state, ids, rows, total.begin));
  }
  return updates;
}

// Returns the sum of the late rows with the newest gradient: a state of LateRowsType. `*sum`: the newest sum of the
// table, which becomes the sum without the embedding's part of this gradient.
Var GradientSums::LateSum(Tape* tape, Var ids, const MicroBatchSums& newest, Var* sum) const {
  const TensorType type = LateRowsType();
  const Var state = Cache(tape, kLateRowsName, type);
  const auto& [first, rows, row_ids] = newest.split;
  if (!first) return Assign(state, LateRowsOf(*sum, ids));
  const Var value = Reshape(EmbeddingGradientAt(Embedding(first, ids), ids, rows, row_ids), type.shape);
  if (!HasSlots(late_->weight)) {
    *sum = Cast(first + 0.0, type.dtype);
    return Assign(state, Cast(value + 0.0, type.dtype));
  }
  const Var slot = tape->FindParameter(SlotName(0, names_[late_->weight]));
  const Var late_sum = Accumulate(Assign(state, LateRowsOf(slot, ids)), value, newest.first);
  // Add has recorded another sum in this slot, for the graph of the other micro-batches of this rank.
  *sum = Accumulate(slot, first, newest.first);
  return late_sum;
}

VarList GradientSums::ReduceWithoutGradients(Tape* tape) const {
  MicroBatchSums newest;
  for (size_t i = 0; i < names_.size(); ++i) {
    newest.sums.push_back(HasSlots(i) ? Slot(tape, 0, i) : Fill(tape, SumType(types_[i]), 0));
  }
  return Reduce(tape, newest);
}

VarList GradientSums::AddSlots(Tape* tape) const {
  VarList sums;
  for (size_t i = 0; i < names_.size(); ++i) {
    const Var into = Slot(tape, 0, i);
    sums.push_back(Assign(into, into + Slot(tape, 1, i)));
  }
  return sums;
}

absl::Status GradientSums::Clear(int slot, Parameters* parameters) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (!HasSlots(i)) continue;
    WEFT_ASSIGN_OR_RETURN(const Tensor sum, parameters->Find(SlotName(slot, names_[i])));
    std::memset(sum.data, 0, sum.type.bytes());
  }
  return absl::OkStatus();
}

Minimized GradientSums::Update(const Optimizer& optimizer, VarSpan weights, Var rate, Var targets,
                               UpdateOptions options) const {
  Tape* const tape = rate.tape;
  VarList updated, gradients, moves;  // `moves`: further updates of the graph
  std::vector<std::vector<WeightPiece>> pieces;
  std::vector<TensorType> types;
  const auto add = [&](const std::string& name, Var weight, Var sum, Var state) {
    const Var gradient = Cast(sum, weight.dtype()) / Cast(targets, weight.dtype());
    options.names.push_back(name);
    updated.push_back(weight);
    gradients.push_back(gradient.type() == state.type() ? Assign(state, gradient) : gradient);
  };
  for (size_t i = 0; i < weights.size(); ++i) {
    types.push_back(types_[i]);
    pieces.push_back(Pieces(types_[i]));
    if (pieces.back().empty()) {
      const Var newest = Slot(tape, 0, i);
      Var sum = newest;
      // With several ranks, Reduce has added the older sums.
      for (size_t k = 1; k < plan_.left.size() && !several_ranks(); ++k) sum = Slot(tape, plan_.left[k], i) + sum;
      add(names_[i], weights[i], sum, newest);
    }
    for (const WeightPiece& piece : pieces.back()) {
      if (piece.owner != options_.ranks.rank()) continue;
      const TensorType type = PieceType(i, piece.rows);
      const std::string name = PieceName(names_[i], piece.rows);
      const Var sum = PieceSum(tape, i, piece);
      if (options_.sharding == Sharding::kWeights) {
        add(name, tape->State(name, type, Zeros(), ParameterKind::kWeight), sum, sum);
        continue;
      }
      const Shape matrix = {weights[i].shape().rows(), weights[i].shape().cols()};
      const Var rows = Slice(Reshape(weights[i], matrix), 0, piece.rows.begin, piece.rows.end);
      add(name, Assign(Cache(tape, name, type), rows), sum, sum);
    }
  }
  if (options_.sharding != Sharding::kNone && several_ranks()) {
    if (!optimizer.row().elementwise) {
      tape->Fail(InvalidArgument(optimizer.row().name,
                                 ": it updates whole matrices, so ranks can't divide its states among themselves"));
    } else if (options.average_decay > 0) {
      tape->Fail(InvalidArgument("averages of weights (ema) don't work if ranks divide the optimizer's states"));
    }
    options.norm = [&](VarSpan all) { return reduce_->Norm(pieces, types, all, &moves); };
  }
  Minimized step = optimizer.Update(updated, gradients, rate, options);
  VarList states;
  size_t next = 0;
  for (size_t i = 0; i < weights.size() && options_.sharding != Sharding::kWeights; ++i) {
    if (pieces[i].empty()) ++next;
    Var state = weights[i];
    for (const WeightPiece& piece : pieces[i]) {
      if (piece.owner != options_.ranks.rank()) continue;
      state = WriteRange(state, step.weights[next++], piece.rows.begin * types_[i].shape.cols());
    }
    if (!pieces[i].empty()) states.push_back(state);
  }
  reduce_->RecordGather(states, &moves);
  moves.push_back(step.update);
  step.update = tape->Group(moves);
  return step;
}

std::vector<std::pair<std::string, std::string>> GradientSums::SlotNames(absl::Span<const int> slots) const {
  std::vector<std::pair<std::string, std::string>> names;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (!HasSlots(i)) continue;
    for (size_t k = 0; k < slots.size(); ++k) {
      names.emplace_back(SlotName(static_cast<int>(k), names_[i]), SlotName(slots[k], names_[i]));
    }
  }
  return names;
}

// Returns the type of the sums of gradients for a weight.
TensorType GradientSums::SumType(const TensorType& weight) const {
  return {weight.dtype == kF32 ? options_.sums : weight.dtype, weight.shape};
}

std::vector<WeightPiece> GradientSums::Pieces(const TensorType& weight) const {
  return options_.sharding == Sharding::kNone ? std::vector<WeightPiece>() : reduce_->Pieces(SumType(weight));
}

// Reports whether slots hold sums for a weight. If ranks divide gradients, and this rank has a single micro-batch, a
// large weight has no slot: its gradient lives only until it has been sent.
bool GradientSums::HasSlots(size_t weight) const {
  const bool divides_sums = options_.sharding == Sharding::kGradients || streams_;
  return !divides_sums || !has_only_last() || Pieces(types_[weight]).empty();
}

Var GradientSums::Slot(Tape* tape, int slot, size_t weight) const {
  return Cache(tape, SlotName(slot, names_[weight]), SumType(types_[weight]));
}

Var GradientSums::PieceSum(Tape* tape, size_t weight, const WeightPiece& piece) const {
  return Cache(tape, PieceSumName(names_[weight], piece.rows), SumType(PieceType(weight, piece.rows)));
}

// Returns the type of the sum of the late rows. It has one axis, so no rank keeps pieces of the total.
TensorType GradientSums::LateRowsType() const {
  const TensorType table = SumType(types_[late_->weight]);
  return {table.dtype, {late_->rows * table.shape.cols()}};
}

Var GradientSums::LateRowsOf(Var sum, Var ids) const { return Reshape(Embedding(sum, ids), LateRowsType().shape); }

TensorType GradientSums::PieceType(size_t weight, IndexRange rows) const {
  return {types_[weight].dtype, {rows.size(), types_[weight].shape.cols()}};
}

}  // namespace weft
