// Ops that send and receive ranges of values, and that add and write such ranges. A range has the elements begin .. end
// - 1 of a value in memory order. The shape of the value does not matter.
//
//   const Var sent = Send(gradient, {0, 512}, {.peer = 1, .tag = 6});
//   const Var received = Receive(/*after=*/gradient, /*elements=*/512, {.peer = 1, .tag = 7});
//   const Var sum = AddRanges(gradient, /*x_begin=*/512, received, /*y_begin=*/0, /*elements=*/512);
#ifndef WEFT_DISTRIBUTED_MESSAGE_OPS_H_
#define WEFT_DISTRIBUTED_MESSAGE_OPS_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/op.h"
#include "weft/distributed/index_range.h"
#include "weft/distributed/piece_name.h"

namespace weft {

// The cost model of messages: a message takes kMessageSeconds, plus the time of its bytes at kNetworkBytesPerSecond.
// These are the latency of TCP on a local network and the bandwidth of 10 Gbit/s.
inline constexpr double kMessageSeconds = 25e-6, kNetworkBytesPerSecond = 1.25e9;

// The other side of a message: its rank, and the tag by which it finds the message.
struct Route {
  int peer = 0, tag = 0;
};

// Sends a range of `x`. Returns a value without content, which exists once the bytes have left. No op reads this value,
// so the caller must list it among the updates of the compiled graph.
Var Send(Var x, IndexRange range, Route route);
// Receives `elements` elements from the peer. Returns them as [elements], with the dtype of `after`. The message starts
// when `after` has been computed.
Var Receive(Var after, int64_t elements, Route route);
// Replaces a range of `state` by elements that the peer sends. Returns the next version of the state.
Var ReceiveInto(Var state, IndexRange range, Route route);
// Returns x[x_begin + i] + y[y_begin + i] for i in 0 .. elements - 1: [elements].
Var AddRanges(Var x, int64_t x_begin, Var y, int64_t y_begin, int64_t elements);
// Replaces the elements of `state` from `begin` on by `values`. Returns the next version of the state.
Var WriteRange(Var state, Var values, int64_t begin);

// Records the messages that give the values of all ranks to every rank. Each rank sends its value to each other rank,
// so this suits small values.
//
//   const Var state = tape->State("all_ids", {kI32, {12}}, Zeros(), ParameterKind::kCache);
//   const IndexRange parts[] = {{0, 6}, {6, 12}};  // of ranks 0 and 1
//   const Var all_ids = AllGather(state, ids, parts, rank, &updates);
//
// Replaces the elements parts[r] of `state` by the value of rank r, for each r. Returns the next version of the state.
// `mine`: the value of this rank; empty if its part has no elements. Appends the sends to `updates`. A graph can have
// one such exchange, because all its messages have one tag.
Var AllGather(Var state, Var mine, absl::Span<const IndexRange> parts, int rank, VarList* updates);

// Attributes of the op that gathers a weight whose rows the ranks have divided: it sends this rank's rows to all other
// ranks, and receives their rows. distributed/weight_gathers.h puts it into programs.
//
//   const GatherRowsAttrs attrs = {.type = weight, .pieces = NumberOfPieces(pieces), .rank = 0, .ranks = 2, .tag = 5};
//   const VarList gathered = GatherRowsInGraph(&tape, attrs, own);  // the whole weight, and the end of the messages
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

// Records the gather. `own`: the pieces of this rank, in the order of rows. Returns the whole weight, and a value
// without content, which exists once all messages have ended.
VarList GatherRowsInGraph(Tape* tape, const GatherRowsAttrs& attrs, VarSpan own);

}  // namespace weft

#endif  // WEFT_DISTRIBUTED_MESSAGE_OPS_H_
