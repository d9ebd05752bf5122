// An action of the plan becomes one node: a send, a receive or a sum. In the phase that exchanges pieces of the total,
// pieces are received in place, in the state of the last block.
#include "weft/distributed/all_reduce.h"

#include <algorithm>
#include <utility>

#include "weft/base/status.h"
#include "weft/core/tensor.h"
#include "weft/distributed/communicator.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

using Action = ReductionAction;

// Returns the elements of a piece. Pieces of matrices have whole blocks of rows.
IndexRange ElementsOf(const Shape& shape, int pieces, int piece) {
  const int64_t quantum = shape.rank() < 2 ? kPieceQuantum : SquareSumBlockRows(shape) * shape.cols();
  return PieceRange(shape.elements(), pieces, piece, std::max<int64_t>(quantum, 1));
}

// A value that holds consecutive elements of a weight's gradient. The first of them has the index `begin`.
struct Part {
  Var var;
  int64_t begin = 0;
};

// Records the actions of one bucket in the order of the plan.
class Bucket {
 public:
  // `blocks`: the values of this rank's blocks, with equal types.
  Bucket(const ReductionPlan& plan, VarSpan blocks, int first_tag, VarList* updates)
      : plan_(plan),
        blocks_(blocks),
        first_tag_(first_tag),
        updates_(*updates),
        shape_(blocks[0].shape()),
        latest_(blocks.back()),
        parts_(plan.actions.size()) {}

  // Records the actions of the phase that adds.
  void Reduce() {
    for (size_t i = 0; i < plan_.actions.size(); ++i) {
      const Action& action = plan_.actions[i];
      const IndexRange range = RangeOf(action.piece_begin, action.piece_end);
      if (action.phase != Action::kReduce || range.size() == 0) continue;
      const Route route = {action.peer, first_tag_ + action.tag};
      if (action.kind == Action::kSend) {
        const Part from = At(action.sources[0]);
        updates_.push_back(Send(from.var, {range.begin - from.begin, range.end - from.begin}, route));
      } else if (action.kind == Action::kReceive) {
        parts_[i] = {Receive(latest_, range.size(), route), range.begin};
      } else {
        const Part x = At(action.sources[0]), y = At(action.sources[1]);
        latest_ = AddRanges(x.var, range.begin - x.begin, y.var, range.begin - y.begin, range.size());
        parts_[i] = {latest_, range.begin};
      }
    }
  }

  // Returns a piece of the total, [elements], if this rank computes the piece; otherwise returns an empty Var.
  Var TotalOf(int piece) const {
    const ReductionSource source = plan_.result[static_cast<size_t>(piece)];
    const Part part = At(source);
    const IndexRange range = RangeOf(piece, piece + 1);
    if (range.size() == 0 || !part.var) return {};
    if (part.var.shape().elements() == range.size()) return part.var;
    return Slice(part.var, 0, range.begin - part.begin, range.end - part.begin);
  }

  // Writes the pieces of the total that this rank computes to `state`. Returns the last version of `state`.
  Var Write(Var state) const {
    for (int piece = 0; piece < plan_.pieces; ++piece) {
      if (const Var total = TotalOf(piece)) state = WriteRange(state, total, RangeOf(piece, piece + 1).begin);
    }
    return state;
  }

  // Records the phase that exchanges the pieces of the total. This rank receives pieces in `state`. `state` has the
  // shape of a block, and must already contain the pieces that this rank computes. Returns the last version of `state`.
  Var Gather(Var state) {
    for (const Action& action : plan_.actions) {
      const IndexRange range = RangeOf(action.piece_begin, action.piece_end);
      if (action.phase != Action::kGather || range.size() == 0) continue;
      const Route route = {action.peer, first_tag_ + action.tag};
      if (action.kind == Action::kReceive) {
        state = ReceiveInto(state, range, route);
      } else {
        updates_.push_back(SendTotal(action, range, state, route));
      }
    }
    return state;
  }

  // Returns the total of a plan whose values have one piece.
  Var Total() const { return At(plan_.result[0]).var; }

 private:
  IndexRange RangeOf(int piece_begin, int piece_end) const {
    return {ElementsOf(shape_, plan_.pieces, piece_begin).begin, ElementsOf(shape_, plan_.pieces, piece_end - 1).end};
  }

  Part At(const ReductionSource& source) const {
    const size_t index = static_cast<size_t>(source.index);
    return source.kind == ReductionSource::kBlock ? Part{blocks_[index], 0} : parts_[index];
  }

  // Sends pieces of the total. If a single sum has all these pieces, the send reads this sum. So the send need not wait
  // until the sum has been written to `state`.
  Var SendTotal(const Action& action, IndexRange range, Var state, Route route) const {
    if (action.sources.size() == 1) {
      const Part part = At(action.sources[0]);
      if (part.var) return Send(part.var, {range.begin - part.begin, range.end - part.begin}, route);
    }
    return Send(state, range, route);
  }

  const ReductionPlan& plan_;
  const VarSpan blocks_;
  const int first_tag_;
  VarList& updates_;
  const Shape shape_;
  Var latest_;               // receives start after this value
  std::vector<Part> parts_;  // by action: the value that it makes; empty for sends and for pieces received in place
};

int64_t BlocksOf(const Shape& weight, IndexRange rows) {
  const int64_t block = SquareSumBlockRows(weight);
  return (rows.size() + block - 1) / block;
}

// Returns the element of the state of sums for each block, in the order of weights and blocks: i32 [blocks]. `parts`:
// for each rank, its elements of the state.
Var OrderOfBlocks(Tape* tape, absl::Span<const std::vector<WeightPiece>> weights, absl::Span<const TensorType> types,
                  std::vector<IndexRange> parts) {
  std::vector<int32_t> order;
  for (size_t i = 0; i < weights.size(); ++i) {
    for (const WeightPiece& piece : weights[i]) {
      for (int64_t k = BlocksOf(types[i].shape, piece.rows); k > 0; --k) {
        order.push_back(static_cast<int32_t>(parts[static_cast<size_t>(piece.owner)].begin++));
      }
    }
  }
  return tape->Constant({{kI32, {static_cast<int64_t>(order.size())}}, reinterpret_cast<std::byte*>(order.data())});
}

}  // namespace

absl::StatusOr<AllReduce> AllReduce::Create(absl::Span<const IndexRange> ranges, int rank, int64_t bucket_bytes) {
  AllReduce reduce;
  reduce.rank_ = rank;
  reduce.bucket_bytes_ = bucket_bytes;
  const auto size = static_cast<int64_t>(ranges.size());
  WEFT_ASSIGN_OR_RETURN(std::vector<ReductionPlan> doubling, PlanReduction(ReductionKind::kDoubling, ranges));
  WEFT_ASSIGN_OR_RETURN(std::vector<ReductionPlan> scatter, PlanReduction(ReductionKind::kScatter, ranges));
  reduce.owners_.resize(static_cast<size_t>(size));
  for (int r = 0; r < size; ++r) {
    const ReductionPlan& plan = scatter[static_cast<size_t>(r)];
    for (int piece = 0; piece < plan.pieces; ++piece) {
      const ReductionSource source = plan.result[static_cast<size_t>(piece)];
      const bool sums = source.kind == ReductionSource::kBlock ||
                        plan.actions[static_cast<size_t>(source.index)].phase == Action::kReduce;
      if (sums) reduce.owners_[static_cast<size_t>(piece)] = r;
    }
  }
  for (const std::vector<ReductionPlan>* plans : {&doubling, &scatter}) {
    for (const ReductionPlan& plan : *plans) {
      for (const Action& action : plan.actions) reduce.tags_ = std::max(reduce.tags_, action.tag + 1);
    }
  }
  reduce.doubling_ = std::move(doubling[static_cast<size_t>(rank)]);
  reduce.scatter_ = std::move(scatter[static_cast<size_t>(rank)]);
  return reduce;
}

std::vector<WeightPiece> AllReduce::Pieces(const TensorType& weight) const {
  std::vector<WeightPiece> pieces;
  if (weight.shape.rank() < 2 || static_cast<int64_t>(weight.bytes()) < bucket_bytes_ || owners_.size() < 2) {
    return pieces;
  }
  for (int piece = 0; piece < scatter_.pieces; ++piece) {
    const IndexRange range = ElementsOf(weight.shape, scatter_.pieces, piece);
    if (range.size() == 0) continue;
    const int64_t cols = weight.shape.cols();
    pieces.push_back({owners_[static_cast<size_t>(piece)], {range.begin / cols, range.end / cols}});
  }
  return pieces;
}

VarList AllReduce::Record(absl::Span<const Blocks> weights, VarList* updates, const KeepPiece* keep) const {
  VarList totals(weights.size());
  std::vector<size_t> small;  // indices of the weights of the next bucket
  int64_t small_bytes = 0;
  int next_tag = 0;
  const auto take_tags = [&] { return std::exchange(next_tag, next_tag + tags_); };
  const auto record_small = [&] {
    if (!small.empty()) RecordSmall(weights, small, take_tags(), &totals, updates);
    small.clear();
    small_bytes = 0;
  };
  for (size_t i = 0; i < weights.size(); ++i) {
    const Blocks& blocks = weights[i];
    const TensorType type = blocks[0].type();
    const auto bytes = static_cast<int64_t>(type.bytes());
    if (bytes >= bucket_bytes_) {
      Bucket bucket(scatter_, blocks, take_tags(), updates);
      bucket.Reduce();
      const std::vector<WeightPiece> pieces = keep != nullptr ? Pieces(type) : std::vector<WeightPiece>();
      if (pieces.empty()) {
        totals[i] = bucket.Gather(bucket.Write(blocks.back()));
        continue;
      }
      int piece = 0;
      for (const WeightPiece& each : pieces) {
        while (ElementsOf(type.shape, scatter_.pieces, piece).size() == 0) ++piece;
        if (each.owner == rank_) (*keep)(i, each, bucket.TotalOf(piece));
        ++piece;
      }
      continue;
    }
    if (!small.empty() && weights[small[0]][0].dtype() != type.dtype) record_small();
    small.push_back(i);
    small_bytes += bytes;
    if (small_bytes >= bucket_bytes_) record_small();
  }
  record_small();
  if (next_tag >= kFirstReservedTag && !weights.empty()) {
    weights[0][0].tape->Fail(InvalidArgument("the gradients need ", next_tag, " tags of messages between ranks, but ",
                                             kFirstReservedTag, " exist"));
  }
  return totals;
}

void AllReduce::RecordGather(VarSpan states, VarList* updates) const {
  int next_tag = 0;
  for (Var state : states) {
    const VarList blocks = {state};
    Bucket bucket(scatter_, blocks, std::exchange(next_tag, next_tag + tags_), updates);
    updates->push_back(bucket.Gather(state));
  }
}

void AllReduce::RecordSmall(absl::Span<const Blocks> weights, absl::Span<const size_t> small, int first_tag,
                            VarList* totals, VarList* updates) const {
  VarList joined;
  for (size_t block = 0; block < blocks().size(); ++block) {
    VarList parts;
    for (size_t i : small) parts.push_back(Reshape(weights[i][block], {-1}));
    joined.push_back(parts.size() == 1 ? parts[0] : Concat(parts, 0));
  }
  Bucket bucket(doubling_, joined, first_tag, updates);
  bucket.Reduce();
  const Var total = bucket.Total();
  int64_t begin = 0;
  for (size_t i : small) {
    const Shape shape = weights[i][0].shape();
    const int64_t end = begin + shape.elements();
    (*totals)[i] = Assign(weights[i].back(), Reshape(Slice(total, 0, begin, end), shape));
    begin = end;
  }
}

// One state holds the sums of squares of all blocks, ordered by rank. Each rank writes its own part, sends the part to
// all others and receives their parts. Then the sums are put into the order of the weights and their blocks.
Var AllReduce::Norm(absl::Span<const std::vector<WeightPiece>> weights, absl::Span<const TensorType> types,
                    VarSpan gradients, VarList* updates) const {
  Tape* const tape = gradients[0].tape;
  const DType dtype = gradients[0].dtype();
  std::vector<IndexRange> parts(owners_.size());  // by rank: its elements of the state
  for (size_t i = 0; i < weights.size(); ++i) {
    for (const WeightPiece& piece : weights[i]) {
      parts[static_cast<size_t>(piece.owner)].end += BlocksOf(types[i].shape, piece.rows);
    }
  }
  int64_t blocks = 0;
  for (IndexRange& part : parts) {  // so far, each begins at 0
    part = {blocks, blocks + part.end};
    blocks = part.end;
  }

  VarList whole, own;  // sums of squares: of whole gradients; of the blocks of this rank's pieces
  const Var* gradient = gradients.begin();
  for (const std::vector<WeightPiece>& pieces : weights) {
    if (pieces.empty()) whole.push_back(SquareSum(*gradient++));
    for (const WeightPiece& piece : pieces) {
      if (piece.owner == rank_) own.push_back(SquareSumBlocks(*gradient++));
    }
  }
  if (blocks == 0) return RootOfSum(whole);
  const Var state = tape->State("gradient_squares", {dtype, {blocks}}, Zeros(), ParameterKind::kCache);
  const Var mine = own.empty() ? Var() : own.size() == 1 ? own[0] : Concat(own, 0);
  const Var all = AllGather(state, mine, parts, rank_, updates);
  const Var table = Reshape(all, {blocks, 1});
  const Var ordered = Reshape(Embedding(table, OrderOfBlocks(tape, weights, types, parts)), {blocks});
  VarList squares;
  int64_t begin = 0;
  const Var* next_whole = whole.begin();
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].empty()) {
      squares.push_back(*next_whole++);
      continue;
    }
    int64_t end = begin;
    for (const WeightPiece& piece : weights[i]) end += BlocksOf(types[i].shape, piece.rows);
    squares.push_back(Sum(Slice(ordered, 0, begin, end)));
    begin = end;
  }
  return RootOfSum(squares);
}

}  // namespace weft
