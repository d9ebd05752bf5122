// Writes a timed run as a Chrome trace, which ui.perfetto.dev and chrome://tracing display.
//
//   Runner runner(graph, &parameters, {.timed = true});
//   ...
//   WriteFile("trace.json", {ChromeTrace(graph, runner.tile_times())});
#ifndef WEFT_LAB_TRACE_H_
#define WEFT_LAB_TRACE_H_

#include <string>

#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/runner.h"

namespace weft {

// One lane a worker, one slice for each tile of each kernel call: its op, and in the details scope, types, rows,
// columns, bytes and GFLOP/s, and whether the task is on the longest path of this run's times. Two counters: tasks that
// are ready and not begun, and bytes of values that are live.
std::string ChromeTrace(const Graph& graph, absl::Span<const TileTime> tiles);

}  // namespace weft

#endif  // WEFT_LAB_TRACE_H_
