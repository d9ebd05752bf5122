// The memory plan: a place for every value, such that no two that live at once share bytes, whatever order the executor
// runs independent steps in.
#ifndef WEFT_GRAPH_MEMORY_PLAN_H_
#define WEFT_GRAPH_MEMORY_PLAN_H_

#include "weft/graph/graph.h"

namespace weft {

// Fills in places and memory figures of a graph whose program and steps (node, successors by data) are there, and adds
// the edges that reuse needs: a step that overwrites bytes waits for every step that reads what was there. `kept` lasts
// to the end of the run.
void PlanMemory(CompiledGraph* graph, absl::Span<const ValueId> kept);

}  // namespace weft

#endif  // WEFT_GRAPH_MEMORY_PLAN_H_
