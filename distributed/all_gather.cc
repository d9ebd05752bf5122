#include "weft/distributed/all_gather.h"

#include "weft/distributed/message_ops.h"
#include "weft/distributed/tags.h"

namespace weft {

Var AllGather(Var state, Var mine, absl::Span<const IndexRange> parts, int rank, VarList* updates) {
  const auto size = static_cast<int>(parts.size());
  if (mine) {
    state = WriteRange(state, mine, parts[static_cast<size_t>(rank)].begin);
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) updates->push_back(Send(mine, {0, mine.shape().elements()}, {peer, kAllGatherTag}));
    }
  }
  for (int peer = 0; peer < size; ++peer) {
    const IndexRange part = parts[static_cast<size_t>(peer)];
    if (peer != rank && part.size() > 0) state = ReceiveInto(state, part, {peer, kAllGatherTag});
  }
  return state;
}

}  // namespace weft
