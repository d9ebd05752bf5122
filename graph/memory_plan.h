// The memory plan: a place for every value, such that no two that live at once share bytes, whatever order the executor
// runs independent tasks in.
#ifndef WEFT_GRAPH_MEMORY_PLAN_H_
#define WEFT_GRAPH_MEMORY_PLAN_H_

#include <vector>

#include "weft/graph/graph.h"

namespace weft {

// A step overwrites bytes that others use: all of these come before any tile of it, but for those of its own group,
// which come before it tile by tile.
struct Reuse {
  uint32_t step = 0;
  uint32_t users = 0;  // Reuses::users
};
struct Reuses {
  std::vector<Reuse> reuses;                 // by step
  std::vector<std::vector<uint32_t>> users;  // sets of steps, rising
};

// Fills in places and memory figures of a graph whose program, steps and groups are there. Returns the orders that its
// reuse of bytes asks for. `kept` lasts to the end of the run.
Reuses PlanMemory(CompiledGraph* graph, absl::Span<const ValueId> kept);

// The bytes of the arena that PlanMemory would give this program, with the groups of MakeSteps (graph/fuse.h).
size_t PlannedBytes(const Program& program, absl::Span<const ValueId> kept, double tile_seconds, bool fuse);

}  // namespace weft

#endif  // WEFT_GRAPH_MEMORY_PLAN_H_
