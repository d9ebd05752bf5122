// Records the global norm of gradients whose pieces are on different ranks. Ranks exchange the sums of squares of fixed
// blocks of rows, so the norm has the same bits as GlobalNorm (ops/ops.h) of whole gradients.
//
//   const auto norm = [&](VarSpan gradients) { return NormOfPieces(reduce, weights, types, gradients, &updates); };
//   optimizer.Update(pieces, gradients, rate, {.names = names, .norm = norm});
#ifndef WEFT_DISTRIBUTED_PIECE_NORM_H_
#define WEFT_DISTRIBUTED_PIECE_NORM_H_

#include <vector>

#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/distributed/all_reduce.h"

namespace weft {

// `weights`: the pieces of each weight (AllReduce::Pieces); empty if this rank has the whole gradient. `types`: the
// types of the gradients of these weights. `gradients`: for each weight in this order, the whole gradient, or the
// gradients of the pieces that this rank owns. Appends the sends to `updates`. Returns f32 or f64 [].
Var NormOfPieces(const AllReduce& reduce, absl::Span<const std::vector<WeightPiece>> weights,
                 absl::Span<const TensorType> types, VarSpan gradients, VarList* updates);

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_PIECE_NORM_H_
