// An op that gathers a weight whose rows the ranks have divided: it sends this rank's rows to all other ranks, and
// receives their rows. distributed/weight_gathers.h puts it into programs.
//
//   const GatherRowsAttrs attrs = {.type = weight, .pieces = NumberOfPieces(pieces), .rank = 0, .ranks = 2, .tag = 5};
//   const VarList gathered = GatherRowsInGraph(&tape, attrs, own);  // the whole weight, and the end of the messages
#ifndef WEFT_DISTRIBUTED_GATHER_ROWS_H_
#define WEFT_DISTRIBUTED_GATHER_ROWS_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "weft/core/op.h"
#include "weft/core/tape.h"
#include "weft/distributed/all_reduce.h"

namespace weft {

struct GatherRowsAttrs {
  TensorType type;              // of the whole weight
  int32_t pieces = 0;           // NumberOfPieces of the weight's pieces
  int32_t rank = 0, ranks = 0;  // this rank, and the number of ranks
  int32_t tag = 0;              // of all messages
  auto Fields() const {
    return std::tuple{AttrField{"dtype", type.dtype}, AttrField{"shape", type.shape}, AttrField{"pieces", pieces},
                      AttrField{"rank", rank},        AttrField{"ranks", ranks},      AttrField{"tag", tag}};
  }
};

// Returns a number that stands for `pieces`, the pieces of a weight in the order of rows. Equal pieces have one number.
// Attributes of ops are plain bytes, so they can't hold the pieces themselves, which are kept until the program ends.
int32_t NumberOfPieces(const std::vector<WeightPiece>& pieces);

// Records the op. `own`: the pieces of this rank, in the order of rows. Returns the whole weight, and a value without
// content, which exists once all messages have ended.
VarList GatherRowsInGraph(Tape* tape, const GatherRowsAttrs& attrs, VarSpan own);

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_GATHER_ROWS_H_
