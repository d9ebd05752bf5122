// Chooses which nodes a program computes a second time, so that fewer bytes are live at once.
//
// Times are positions in the program: node `n` runs at time `n`, and the roots are read at the time after the last
// node.
#ifndef WEFT_GRAPH_PASSES_RECOMPUTATION_H_
#define WEFT_GRAPH_PASSES_RECOMPUTATION_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/graph/passes/passes.h"

namespace weft {

struct Recomputation {
  // (time, node), rising: a clone of `node` is made just before `time`. Reads of the node's outputs from that time on
  // read the clone's instead.
  std::vector<std::pair<uint32_t, uint32_t>> clones;
  double seconds = 0;  // of all clones, by the cost model
  bool fits = false;   // by the estimate, at most the limit's bytes are live at any time
};

// Recomputes the nodes that cost the fewest seconds per byte freed, one after the other, until at most `limit` bytes
// are live at any time or no node helps.
Recomputation ChooseRecomputation(const Rewrite& rewrite, size_t limit);

}  // namespace weft

#endif  // WEFT_GRAPH_PASSES_RECOMPUTATION_H_
