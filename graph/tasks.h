// MakeTasks makes the tasks of a compiled graph: one for each tile of each group, and joins. A task waits for the tasks
// of other groups that write what it reads, which means that their rectangles overlap. A task that reuses bytes waits
// for all tiles of the other groups that used these bytes earlier.
#ifndef WEFT_GRAPH_TASKS_H_
#define WEFT_GRAPH_TASKS_H_

#include "weft/graph/graph.h"
#include "weft/graph/memory_plan.h"

namespace weft {

// Sets `tasks` and `schedule` of `graph`, and `first_task` of its groups. MakeKernelCalls must have run. `reuses`: the
// result of PlanMemory.
void MakeTasks(CompiledGraph* graph, const Reuses& reuses);

}  // namespace weft

#endif  // WEFT_GRAPH_TASKS_H_
