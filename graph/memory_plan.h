// The memory plan: a place for every value, such that no two that live at once share bytes, whatever order the executor
// runs independent tasks in.
#ifndef WEFT_GRAPH_MEMORY_PLAN_H_
#define WEFT_GRAPH_MEMORY_PLAN_H_

#include "weft/graph/call_times.h"
#include "weft/graph/graph.h"

namespace weft {

// Fills in places and memory figures of a graph whose program, calls and groups are there. Returns the orders that its
// reuse of bytes asks for. `kept` lasts to the end of the run.
Reuses PlanMemory(CompiledGraph* graph, absl::Span<const ValueId> kept);

// The least bytes of an arena that PlanMemory finds for this program, with the groups of
// MakeKernelCalls (graph/fuse.h); a budget of so much is kept to.
size_t PlannedBytes(const Program& program, absl::Span<const ValueId> kept, double tile_seconds, bool fuse);

}  // namespace weft

#endif  // WEFT_GRAPH_MEMORY_PLAN_H_
