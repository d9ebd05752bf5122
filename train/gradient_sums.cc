#include "weft/train/gradient_sums.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/distributed/message_ops.h"
#include "weft/ops/ops.h"
#include "weft/train/piece_norm.h"

namespace weft {
namespace {

std::string SlotName(int slot, absl::string_view weight) { return absl::StrCat("gradient_sum.", slot, ".", weight); }
std::string PieceSumName(absl::string_view weight, IndexRange rows) {
  return absl::StrCat("gradient_sum.", PieceName(weight, rows));
}

Var Cache(Tape* tape, const std::string& name, const TensorType& type) {
  return tape->State(name, type, Zeros(), ParameterKind::kCache);
}

constexpr char kLateRowsName[] = "gradient_sum.late_rows";

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
  return plan;
}

}  // namespace

absl::StatusOr<GradientSums> GradientSums::Plan(const StepOptions& options, bool streams) {
  GradientSums sums;
  sums.ranks_ = options.ranks;
  sums.sums_ = options.sums;
  sums.sharding_ = options.sharding;
  sums.streams_ = streams;
  std::vector<IndexRange> ranges;
  for (int rank = 0; rank < sums.ranks_.size(); ++rank) {
    ranges.push_back(RowsOf({rank, sums.ranks_.size()}, options.micro_batches));
  }
  const int rank = sums.ranks_.rank();
  sums.mine_ = ranges[static_cast<size_t>(rank)];
  WEFT_ASSIGN_OR_RETURN(sums.reduce_, AllReduce::Create(ranges, rank, options.bucket_bytes));
  sums.plan_ = PlanSums(sums.reduce_->blocks());
  return sums;
}

void GradientSums::SetWeights(std::vector<std::string> names, std::vector<TensorType> types) {
  names_ = std::move(names);
  types_ = std::move(types);
  for (size_t i = 0; i < names_.size(); ++i) {
    for (int slot = 0; slot < plan_.slots && HasSlots(i); ++slot) {
      buffers_.push_back({SlotName(slot, names_[i]), SumType(types_[i]), Zeros(), ParameterKind::kCache});
    }
    for (const WeightPiece& piece : Pieces(types_[i])) {
      if (piece.owner != ranks_.rank()) continue;
      const TensorType type = SumType(PieceType(i, piece.rows));
      buffers_.push_back({PieceSumName(names_[i], piece.rows), type, Zeros(), ParameterKind::kCache});
    }
  }
}

void GradientSums::SetLateRows(const LateRows& late) {
  late_ = late;
  buffers_.push_back({kLateRowsName, LateRowsType(), Zeros(), ParameterKind::kCache});
}

Var GradientSums::Add(absl::string_view weight, Var gradient, Var first) const {
  const auto index = static_cast<size_t>(absl::c_find(names_, weight) - names_.begin());
  // Adds 0, because a slot would hold 0 + gradient, in which -0 becomes 0.
  if (!HasSlots(index)) return Cast(gradient + 0.0, SumType(gradient.type()).dtype);
  return Accumulate(Slot(gradient.tape, 0, index), gradient, first);
}

VarList GradientSums::Reduce(Tape* tape, const std::vector<std::string>& names, const VarList& newest,
                             absl::FunctionRef<int(int)> slot_of, const SplitGradient& split, Var first) const {
  absl::flat_hash_map<std::string, Var> by_name;
  for (size_t i = 0; i < names.size(); ++i) by_name[names[i]] = newest[i];
  VarList updates;
  Var ids;  // of the late rows
  std::vector<size_t> indices;
  if (late_) {  // the backward pass computes the first part of its gradient first, and then those of the last layers
    ids = late_->GatherIds(tape, split, &updates);
    indices.push_back(late_->weight());
  }
  for (size_t i = names_.size(); i-- > 0;) {
    if (!late_ || i != late_->weight()) indices.push_back(i);
  }
  std::vector<AllReduce::Blocks> weights;
  AllReduce::Blocks late_blocks;
  for (const size_t i : indices) {
    const bool is_late = late_ && i == late_->weight();
    Var sum = by_name[names_[i]], late_sum;
    if (is_late) late_sum = LateSum(tape, ids, split, first, &sum);
    for (size_t k = 1; k < plan_.left.size(); ++k) {
      const Var older = Slot(tape, slot_of(plan_.left[k]), i);
      sum = Assign(sum, older + sum);
      if (is_late) late_sum = Assign(late_sum, LateRowsOf(older, ids) + late_sum);
    }
    AllReduce::Blocks& blocks = weights.emplace_back();
    for (const int slot : plan_.blocks) {
      blocks.push_back(Slot(tape, slot_of(slot), i));
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
  const VarList whole = reduce_->Record(weights, &updates, sharding_ == Sharding::kNone ? nullptr : &keep_piece);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (whole[i]) totals.push_back({indices[i], whole[i]});
  }
  if (late_) updates.push_back(whole.back());  // other ranks send to this rank even if it owns no piece of the table
  for (const Total& total : totals) {
    if (!late_ || total.weight != late_->weight()) {
      updates.push_back(total.state);
      continue;
    }
    const Var rows = Reshape(whole.back(), {late_->rows(), types_[total.weight].shape.cols()});
    updates.push_back(WriteRows(total.state, ids, rows, total.begin));
  }
  return updates;
}

// Returns the sum of the late rows with the newest gradient: a state of LateRowsType. `*sum`: the newest sum of the
// table, which becomes the sum without the embedding's part of this gradient.
Var GradientSums::LateSum(Tape* tape, Var ids, const SplitGradient& split, Var first, Var* sum) const {
  const TensorType type = LateRowsType();
  const Var state = Cache(tape, kLateRowsName, type);
  if (!split.first) return Assign(state, LateRowsOf(*sum, ids));
  const Var rows = EmbeddingGradientAt(Embedding(split.first, ids), ids, split.rows, split.ids);
  const Var value = Reshape(rows, type.shape);
  if (!HasSlots(late_->weight())) {
    *sum = Cast(split.first + 0.0, type.dtype);
    return Assign(state, Cast(value + 0.0, type.dtype));
  }
  const Var slot = tape->FindParameter(SlotName(0, names_[late_->weight()]));
  const Var late_sum = Accumulate(Assign(state, LateRowsOf(slot, ids)), value, first);
  // Add has recorded another sum in this slot, for the graph of the other micro-batches of this rank.
  *sum = Accumulate(slot, split.first, first);
  return late_sum;
}

VarList GradientSums::ReduceWithoutGradients(Tape* tape) const {
  VarList newest;
  for (size_t i = 0; i < names_.size(); ++i) {
    newest.push_back(HasSlots(i) ? Slot(tape, plan_.left[0], i) : Fill(tape, SumType(types_[i]), 0));
  }
  return Reduce(tape, names_, newest, [](int slot) { return slot; });
}

VarList GradientSums::AddSlots(Tape* tape) const {
  VarList sums;
  for (size_t i = 0; i < names_.size(); ++i) {
    const Var into = Slot(tape, 0, i);
    sums.push_back(Assign(into, into + Slot(tape, 1, i)));
  }
  return sums;
}

VarList GradientSums::Clear(Tape* tape) const {
  VarList cleared;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (!HasSlots(i)) continue;
    const Var slot = Slot(tape, 0, i);
    cleared.push_back(Assign(slot, FillLike(slot, 0)));
  }
  return cleared;
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
      const Var newest = Slot(tape, plan_.left[0], i);
      add(names_[i], weights[i], WithOlderSums(newest, i), newest);
    }
    for (const WeightPiece& piece : pieces.back()) {
      if (piece.owner != ranks_.rank()) continue;
      const TensorType type = PieceType(i, piece.rows);
      const std::string name = PieceName(names_[i], piece.rows);
      const Var sum = PieceSum(tape, i, piece);
      if (sharding_ == Sharding::kWeights) {
        add(name, tape->State(name, type, Zeros(), ParameterKind::kWeight), sum, sum);
        continue;
      }
      const Shape matrix = {weights[i].shape().rows(), weights[i].shape().cols()};
      const Var rows = Slice(Reshape(weights[i], matrix), 0, piece.rows.begin, piece.rows.end);
      add(name, Assign(Cache(tape, name, type), rows), sum, sum);
    }
  }
  if (sharding_ != Sharding::kNone && several_ranks()) {
    if (!optimizer.row().elementwise) {
      tape->Fail(InvalidArgument(optimizer.row().name,
                                 ": it updates whole matrices, so ranks can't divide its states among themselves"));
    } else if (options.average_decay > 0) {
      tape->Fail(InvalidArgument("averages of weights (ema) don't work if ranks divide the optimizer's states"));
    }
    options.norm = [&](VarSpan all) { return NormOfPieces(*reduce_, pieces, types, all, &moves); };
  }
  Minimized step = optimizer.Update(updated, gradients, rate, options);
  VarList states;
  size_t next = 0;
  for (size_t i = 0; i < weights.size() && sharding_ != Sharding::kWeights; ++i) {
    if (pieces[i].empty()) ++next;
    Var state = weights[i];
    for (const WeightPiece& piece : pieces[i]) {
      if (piece.owner != ranks_.rank()) continue;
      state = WriteRange(state, step.weights[next++], piece.rows.begin * types_[i].shape.cols());
    }
    if (!pieces[i].empty()) states.push_back(state);
  }
  reduce_->RecordGather(states, &moves);
  moves.push_back(step.update);
  step.update = tape->Group(moves);
  return step;
}

GradientSums::Names GradientSums::SlotNames(absl::Span<const int> slots, absl::FunctionRef<int(int)> recorded) const {
  Names names;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (!HasSlots(i)) continue;
    for (const int slot : slots) names.emplace_back(SlotName(recorded(slot), names_[i]), SlotName(slot, names_[i]));
  }
  return names;
}

std::vector<int> GradientSums::ReducedSlots() const {
  std::vector<int> slots = plan_.blocks;
  slots.insert(slots.end(), plan_.left.begin(), plan_.left.end());
  return slots;
}

// Returns the type of the sums of gradients for a weight.
TensorType GradientSums::SumType(const TensorType& weight) const {
  return {weight.dtype == kF32 ? sums_ : weight.dtype, weight.shape};
}

std::vector<WeightPiece> GradientSums::Pieces(const TensorType& weight) const {
  return sharding_ == Sharding::kNone ? std::vector<WeightPiece>() : reduce_->Pieces(SumType(weight));
}

// Reports whether slots hold sums for a weight. If ranks divide gradients, and this rank has a single micro-batch, a
// large weight has no slot: its gradient lives only until it has been sent.
bool GradientSums::HasSlots(size_t weight) const {
  const bool divides_sums = sharding_ == Sharding::kGradients || streams_;
  return !divides_sums || !has_only_last() || Pieces(types_[weight]).empty();
}

Var GradientSums::Slot(Tape* tape, int slot, size_t weight) const {
  return Cache(tape, SlotName(slot, names_[weight]), SumType(types_[weight]));
}

Var GradientSums::PieceSum(Tape* tape, size_t weight, const WeightPiece& piece) const {
  return Cache(tape, PieceSumName(names_[weight], piece.rows), SumType(PieceType(weight, piece.rows)));
}

// Adds the sums in SumPlan::left to `newest`, which is the first of them. With several ranks, Reduce has added them.
Var GradientSums::WithOlderSums(Var newest, size_t weight) const {
  Var sum = newest;
  for (size_t k = 1; k < plan_.left.size() && !several_ranks(); ++k) {
    sum = Slot(newest.tape, plan_.left[k], weight) + sum;
  }
  return sum;
}

// Returns the type of the sum of the late rows. It has one axis, so no rank keeps pieces of the total.
TensorType GradientSums::LateRowsType() const {
  const TensorType table = SumType(types_[late_->weight()]);
  return {table.dtype, {late_->rows() * table.shape.cols()}};
}

Var GradientSums::LateRowsOf(Var sum, Var ids) const { return Reshape(Embedding(sum, ids), LateRowsType().shape); }

TensorType GradientSums::PieceType(size_t weight, IndexRange rows) const {
  return {types_[weight].dtype, {rows.size(), types_[weight].shape.cols()}};
}

}  // namespace weft
