// One state holds the sums of squares of all blocks, ordered by rank. Each rank writes its own part, sends the part to
// all others and receives their parts. Then the sums are put into the order of the weights and their blocks.
#include "weft/distributed/piece_norm.h"

#include <cstdint>
#include <utility>

#include "weft/core/tensor.h"
#include "weft/distributed/index_range.h"
#include "weft/distributed/message_ops.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

int64_t BlocksOf(const Shape& weight, IndexRange rows) {
  const int64_t block = SquareSumBlockRows(weight);
  return (rows.size() + block - 1) / block;
}

// Returns the element of `state` for each block, in the order of weights and blocks: i32 [blocks]. `first`: for each
// rank, the first element of its part.
Var OrderOfBlocks(Tape* tape, absl::Span<const std::vector<WeightPiece>> weights, absl::Span<const TensorType> types,
                  std::vector<int64_t> first) {
  std::vector<int32_t> order;
  for (size_t i = 0; i < weights.size(); ++i) {
    for (const WeightPiece& piece : weights[i]) {
      for (int64_t k = BlocksOf(types[i].shape, piece.rows); k > 0; --k) {
        order.push_back(static_cast<int32_t>(first[static_cast<size_t>(piece.owner)]++));
      }
    }
  }
  return tape->Constant({{kI32, {static_cast<int64_t>(order.size())}}, reinterpret_cast<std::byte*>(order.data())});
}

}  // namespace

Var NormOfPieces(const AllReduce& reduce, absl::Span<const std::vector<WeightPiece>> weights,
                 absl::Span<const TensorType> types, VarSpan gradients, VarList* updates) {
  Tape* const tape = gradients[0].tape;
  const DType dtype = gradients[0].dtype();
  std::vector<int64_t> sizes(static_cast<size_t>(reduce.size()));  // of the ranks' parts of the state
  for (size_t i = 0; i < weights.size(); ++i) {
    for (const WeightPiece& piece : weights[i]) {
      sizes[static_cast<size_t>(piece.owner)] += BlocksOf(types[i].shape, piece.rows);
    }
  }
  std::vector<int64_t> first = {0};
  std::vector<IndexRange> parts;  // by rank: its elements of the state
  for (const int64_t size : sizes) {
    parts.push_back({first.back(), first.back() + size});
    first.push_back(first.back() + size);
  }
  const int64_t blocks = first.back();

  VarList whole, own;  // sums of squares: of whole gradients; of the blocks of this rank's pieces
  const Var* gradient = gradients.begin();
  for (const std::vector<WeightPiece>& pieces : weights) {
    if (pieces.empty()) whole.push_back(SquareSum(*gradient++));
    for (const WeightPiece& piece : pieces) {
      if (piece.owner == reduce.rank()) own.push_back(SquareSumBlocks(*gradient++));
    }
  }
  if (blocks == 0) return RootOfSum(whole);
  const Var state = tape->State("gradient_squares", {dtype, {blocks}}, Zeros(), ParameterKind::kCache);
  const Var mine = own.empty() ? Var() : own.size() == 1 ? own[0] : Concat(own, 0);
  const Var all = AllGather(state, mine, parts, reduce.rank(), updates);
  const Var table = Reshape(all, {blocks, 1});
  const Var ordered = Reshape(Embedding(table, OrderOfBlocks(tape, weights, types, first)), {blocks});
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
