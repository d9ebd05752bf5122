// Records the messages that give the values of all ranks to every rank.
//
//   const Var state = tape->State("all_ids", {kI32, {12}}, Zeros(), ParameterKind::kCache);
//   const IndexRange parts[] = {{0, 6}, {6, 12}};  // of ranks 0 and 1
//   const Var all_ids = AllGather(state, ids, parts, rank, &updates);
//
// Each rank sends its value to each other rank, so this suits small values.
#ifndef WEFT_DISTRIBUTED_ALL_GATHER_H_
#define WEFT_DISTRIBUTED_ALL_GATHER_H_

#include "absl/types/span.h"
#include "weft/core/tape.h"
#include "weft/distributed/index_range.h"

namespace weft {

// Replaces the elements parts[r] of `state` by the value of rank r, for each r. Returns the next version of the state.
// `mine`: the value of this rank; empty if its part has no elements. Appends the sends to `updates`. A graph can have
// one such exchange, because all its messages have one tag.
Var AllGather(Var state, Var mine, absl::Span<const IndexRange> parts, int rank, VarList* updates);

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_ALL_GATHER_H_
