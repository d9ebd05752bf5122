// The memory plan gives every value in the arena an offset. Values that may be live at once never share bytes, in
// whatever order the executor runs independent tasks.
#ifndef WEFT_GRAPH_COMPILE_MEMORY_PLAN_H_
#define WEFT_GRAPH_COMPILE_MEMORY_PLAN_H_

#include "weft/graph/compile/call_times.h"
#include "weft/graph/graph.h"

namespace weft {

// Sets `graph->addresses`, such as arena offsets, and `graph->memory`. MakeKernelCalls must have run, and
// `memory.budget` must be set. Returns the calls that must wait for earlier users of the bytes that they overwrite.
// `kept`: values that must last to the end of the execution. `reuse_messages`: whether kernel calls may overwrite bytes
// that messages have read or written. The calls then wait for other ranks, but the arena is smaller. If the arena
// exceeds `memory.budget` otherwise, the calls may overwrite them in any case.
Reuses PlanMemory(CompiledGraph* graph, absl::Span<const ValueId> kept, bool reuse_messages = false);

// Returns the bytes of the smallest arena that PlanMemory finds for `program`, with groups as MakeKernelCalls
// (graph/compile/fuse.h) makes them. If the memory budget is at least as large, PlanMemory keeps within it.
size_t PlannedBytes(const Program& program, absl::Span<const ValueId> kept, double tile_seconds, bool fuse);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_MEMORY_PLAN_H_
