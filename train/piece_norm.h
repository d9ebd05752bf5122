// Records the global norm of gradients of which each rank has some pieces. Ranks exchange the sums of squares of fixed
// blocks of rows, so the norm has the bits of GlobalNorm (ops/ops.h) on whole gradients.
//
//   const auto norm = [&](VarSpan gradients) { return NormOfPieces(reduce, weights, types, gradients, &updates); };
//   optimizer.Update(pieces, gradients, rate, {.names = names, .norm = norm});
#ifndef WEFT_TRAIN_PIECE_NORM_H_
#define WEFT_TRAIN_PIECE_NORM_H_

#include <vector>

#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/distributed/all_reduce.h"

namespace weft {

// `weights`: the pieces of each weight (AllReduce::Pieces), which are none if this rank has the whole gradient.
// `types`: the types of the gradients of these weights. `gradients`: for each weight in this order, its whole gradient,
// or those of the pieces that this rank owns. Appends what the messages need to `updates`. Returns f32 or f64 [].
Var NormOfPieces(const AllReduce& reduce, absl::Span<const std::vector<WeightPiece>> weights,
                 absl::Span<const TensorType> types, VarSpan gradients, VarList* updates);

}  // namespace weft

#endif  // WEFT_TRAIN_PIECE_NORM_H_
