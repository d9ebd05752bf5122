#include "weft/distributed/weight_rows.h"

#include <cstring>

#include "weft/distributed/message_ends.h"
#include "weft/distributed/piece_name.h"
#include "weft/distributed/tags.h"
#include "weft/graph/transport.h"

namespace weft {

void GatherRows(const Ranks& ranks, const DividedWeight& weight, const Parameters& parameters, GatherTo to,
                std::byte* whole) {
  const auto receives = [&](int rank) { return to == GatherTo::kAll || rank == 0; };
  const size_t row_bytes = static_cast<size_t>(weight.type.shape.cols()) * SizeOf(weight.type.dtype);
  int messages = 0;
  for (const WeightPiece& piece : weight.pieces) {
    for (int peer = 0; peer < ranks.size(); ++peer) {
      if (piece.owner == ranks.rank() && peer != ranks.rank() && receives(peer)) ++messages;
    }
    if (piece.owner != ranks.rank() && receives(ranks.rank())) ++messages;
  }
  MessageEnds ends(messages);
  for (const WeightPiece& piece : weight.pieces) {
    const size_t begin = static_cast<size_t>(piece.rows.begin) * row_bytes;
    const size_t bytes = static_cast<size_t>(piece.rows.size()) * row_bytes;
    if (piece.owner != ranks.rank()) {
      if (receives(ranks.rank()))
        ranks.transport()->Receive({whole + begin, bytes}, piece.owner, kRowsTag, ends.done());
      continue;
    }
    const Tensor mine = *parameters.Find(PieceName(weight.name, piece.rows));
    if (receives(ranks.rank())) std::memcpy(whole + begin, mine.data, bytes);
    for (int peer = 0; peer < ranks.size(); ++peer) {
      if (peer != ranks.rank() && receives(peer))
        ranks.transport()->Send({mine.data, bytes}, peer, kRowsTag, ends.done());
    }
  }
  ends.Wait();
}

}  // namespace weft
