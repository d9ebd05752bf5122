// Makes the tasks of a compiled graph: one for each tile of each group. A task waits for the tasks that write the
// values that it reads. If their group has several tiles, these are the tiles that write a rectangle which overlaps the
// one read. A task that reuses bytes waits for all tiles of the other groups that used these bytes earlier.
#ifndef WEFT_GRAPH_TASKS_H_
#define WEFT_GRAPH_TASKS_H_

#include "weft/graph/graph.h"
#include "weft/graph/memory_plan.h"

namespace weft {

// Sets `graph->tasks` and `graph->schedule`. The calls, groups and tiles of `graph` must be set. `reuses`: from
// PlanMemory.
void MakeTasks(CompiledGraph* graph, const Reuses& reuses);

}  // namespace weft

#endif  // WEFT_GRAPH_TASKS_H_
