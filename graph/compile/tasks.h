// MakeTasks makes the tasks of a compiled graph: one for each tile of each group, and joins. A task waits for a
// task of another group if it reads a rectangle of a value that overlaps the rectangle that the other task writes. A
// task that reuses bytes waits for all tiles of the other groups that used these bytes earlier.
#ifndef WEFT_GRAPH_COMPILE_TASKS_H_
#define WEFT_GRAPH_COMPILE_TASKS_H_

#include "weft/graph/compile/memory_plan.h"
#include "weft/graph/graph.h"

namespace weft {

// Sets `tasks` and `schedule` of `graph`, and `first_task` of its groups. MakeKernelCalls must have run. `reuses`: the
// result of PlanMemory.
void MakeTasks(CompiledGraph* graph, const Reuses& reuses);

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_TASKS_H_
