// Tasks: the tiles of all groups, and which waits for which, from the rectangles that they read and write.
#ifndef WEFT_GRAPH_TASKS_H_
#define WEFT_GRAPH_TASKS_H_

#include "weft/graph/graph.h"
#include "weft/graph/memory_plan.h"

namespace weft {

// Fills in tasks and schedule of a graph whose calls and groups are there.
void MakeTasks(CompiledGraph* graph, const Reuses& reuses);

}  // namespace weft

#endif  // WEFT_GRAPH_TASKS_H_
