// A task that takes long is divisible: its tile is cut into parts, a grid of smaller tiles, which several workers may
// run at the same time. All calls of the group run on one part after the other. So the compiler makes few tasks, and
// many workers still find work in one product. Parts change no bits.
#ifndef WEFT_GRAPH_COMPILE_DIVIDE_H_
#define WEFT_GRAPH_COMPILE_DIVIDE_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "weft/graph/graph.h"

namespace weft {

// Sets part_rows and part_cols of the groups whose tasks can be divided. `tile_seconds`: target duration of a tile; a
// part takes at least an eighth of it. Compile calls it twice: before the memory plan, when parts are assumed not to
// touch each other's bytes, so that the plan knows how long paths are; and after the plan, when this is checked.
void DivideTasks(double tile_seconds, CompiledGraph* graph);

// Returns the number of parts of a tile of `group`.
uint32_t PartCount(const Group& group, const Rect& tile);
// Calls f(rect) for rectangles of `tile` that together hold parts `begin` .. `end` - 1. Parts are numbered column by
// column.
void ForEachRect(const Group& group, const Rect& tile, uint32_t begin, uint32_t end, absl::FunctionRef<void(Rect)> f);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_DIVIDE_H_
