// These functions are the stages of Compile that follow the passes. Each adds to a CompiledGraph, in this order:
// MakeKernelCalls, DivideTasks, PlanMemory, DivideTasks again, MakeTasks.
#ifndef WEFT_GRAPH_COMPILE_STAGES_H_
#define WEFT_GRAPH_COMPILE_STAGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "weft/graph/graph.h"

namespace weft {

// Cuts the nodes that have kernels into tiles, and groups nodes that run together tile by tile (fusion). Sets the
// storage roots, calls, tiles and groups of `graph`, whose program must be set. `tile_seconds`: target duration of a
// tile, above 0. `fuse`: if false, every kernel call is a group of its own.
//
// A node can join the latest group that makes one of its inputs, if tile i of the node reads only those values of the
// group that tile i wrote. So groups stay in a serial order, and each task finds its values in cache. An op with
// a workspace (OpDef::workspace) keeps its tiles: the workspace is sized for them, and bits may depend on them. Other
// ops take the tiles of their group.
void MakeKernelCalls(double tile_seconds, bool fuse, CompiledGraph* graph);

// Sets part_rows and part_cols of the groups whose tasks can be divided. A task that takes long is divisible: its tile
// is cut into parts, a grid of smaller tiles, which several workers may run at the same time. All calls of the group
// run on one part after the other. So the compiler makes few tasks, and many workers still find work in one product.
// Parts change no bits.
//
// `tile_seconds`: target duration of a tile; a part takes at least an eighth of it. Compile calls DivideTasks twice:
// before the memory plan, when parts are assumed not to touch each other's bytes, so that the plan knows how long paths
// are; and after the plan, when this is checked.
void DivideTasks(double tile_seconds, CompiledGraph* graph);

// Returns the number of parts of a tile of `group`.
uint32_t PartCount(const Group& group, const Rect& tile);
// Calls f(rect) for rectangles of `tile` that together hold parts `begin` .. `end` - 1. Parts are numbered column by
// column.
void ForEachRect(const Group& group, const Rect& tile, uint32_t begin, uint32_t end, absl::FunctionRef<void(Rect)> f);

// A Reuse says that `call` overwrites bytes that other kernel calls, the users, wrote or read before. The call waits
// until all tiles of the users have run. Of users in its own group, each tile waits only for the same tile.
struct Reuse {
  uint32_t call = 0;
  uint32_t users = 0;  // index into Reuses::users
};
struct Reuses {
  std::vector<Reuse> reuses;                 // in ascending order of their calls
  std::vector<std::vector<uint32_t>> users;  // sets of kernel calls, each in ascending order
};

// Gives every value in the arena an offset: sets `graph->addresses` and `graph->memory`. Values that may be live at
// once never share bytes, in whatever order the executor runs independent tasks. `memory.budget` must be set. Returns
// the calls that must wait for earlier users of the bytes that they overwrite.
//
// `kept`: values that must last to the end of the execution. `reuse_messages`: whether kernel calls may overwrite bytes
// that messages have read or written. The calls then wait for other ranks, but the arena is smaller. If the arena
// exceeds `memory.budget` otherwise, the calls may overwrite them in any case.
Reuses PlanMemory(CompiledGraph* graph, absl::Span<const ValueId> kept, bool reuse_messages = false);

// Returns the bytes of the smallest arena that PlanMemory finds for `program`, with groups as MakeKernelCalls makes
// them. If the memory budget is at least as large, PlanMemory keeps within it.
size_t PlannedBytes(const Program& program, absl::Span<const ValueId> kept, double tile_seconds, bool fuse);

// Sets `tasks` and `schedule` of `graph`, and `first_task` of its groups: one task for each tile of each group, and
// joins. A task waits for a task of another group if it reads a rectangle of a value that overlaps the rectangle that
// the other task writes. A task that reuses bytes waits for all tiles of the other groups that used these bytes
// earlier. `reuses`: the result of PlanMemory.
void MakeTasks(CompiledGraph* graph, const Reuses& reuses);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_STAGES_H_
