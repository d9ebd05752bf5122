// ChromeTrace writes a timed execution as a Chrome trace, which ui.perfetto.dev and chrome://tracing display.
//
//   Runner runner(graph, &parameters, {.timed = true});
//   ...
//   WriteFile("trace.json", {ChromeTrace(graph, runner.tile_times())});
#ifndef WEFT_LAB_TRACE_H_
#define WEFT_LAB_TRACE_H_

#include <string>

#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"

namespace weft {

// Messages to and from other ranks have lanes of their own, "sends" and "receives". If two messages overlap in time,
// the later one is in another lane, "sends 2". A message's details are its peer, tag and bytes.
//
// Each worker has one lane, and each tile of each kernel call is a slice that shows its op. A slice's details are
// scope, types, rows, columns, bytes and GFLOP/s, and whether the tile's task is on the execution's critical path. Two
// counters show the number of tasks that are ready but not begun, and the bytes of live values.
std::string ChromeTrace(const Graph& graph, absl::Span<const TileTime> tiles);

}  // namespace weft

#endif  // WEFT_LAB_TRACE_H_
