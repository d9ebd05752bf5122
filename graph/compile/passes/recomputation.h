// ChooseRecomputation chooses which nodes a program computes a second time, so that fewer bytes are live at once.
//
// A time is the index of a node: node `n` of the program runs at time `n`. The roots are read at the time after the
// last node.
#ifndef WEFT_GRAPH_COMPILE_PASSES_RECOMPUTATION_H_
#define WEFT_GRAPH_COMPILE_PASSES_RECOMPUTATION_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/graph/compile/passes/passes.h"

namespace weft {

struct Recomputation {
  // Pairs (time, node) in ascending order: a clone of `node` runs just before the node at `time`. From `time` on, reads
  // of the node's outputs read the clone's outputs.
  std::vector<std::pair<uint32_t, uint32_t>> clones;
  double seconds = 0;  // time of all clones, by the cost model
  bool fits = false;   // whether live bytes stay within the limit, by the estimate
};

// Chooses nodes one after the other, first those that cost the fewest seconds for the excess over `limit` that they
// remove. Stops when at most `limit` bytes are live at any time, or when no node helps.
Recomputation ChooseRecomputation(const Rewrite& rewrite, size_t limit);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_PASSES_RECOMPUTATION_H_
