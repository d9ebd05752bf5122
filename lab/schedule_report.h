// ScheduleReport makes a self-contained HTML page about a timed execution. The page shows where each tile ran, how busy
// the workers were, and the critical path. It also shows live bytes over time beside the plan, and estimated beside
// measured times. A table has the nodes that would shorten the execution most if they took no time. ChromeTrace writes
// such an execution for other viewers.
//
//   Runner runner(graph, &parameters, {.policy = &policy, .timed = true});
//   ...
//   WriteFile("report.html", {ScheduleReport(graph, runner.tile_times(),
//                                          {.title = "gpt2", .policy = &policy, .workers = 2})});
#ifndef WEFT_LAB_SCHEDULE_REPORT_H_
#define WEFT_LAB_SCHEDULE_REPORT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"
#include "weft/lab/calibration.h"

namespace weft {

struct ReportOptions {
  std::string title;
  const Policy* policy = &kCriticalPath;     // the execution's policy
  int workers = 1;                           // the execution's number of workers
  const Calibration* calibration = nullptr;  // estimates to compare with measured times; null: the cost model's
};

std::string ScheduleReport(const Graph& graph, absl::Span<const TileTime> tiles, const ReportOptions& options);

// Writes a timed execution as a Chrome trace, which ui.perfetto.dev and chrome://tracing display.
//
// Each worker has one lane, and each tile of each kernel call is a slice that shows its op. A slice's details are
// scope, types, rows, columns, bytes and GFLOP/s, and whether the tile's task is on the execution's critical path. Two
// counters show the number of tasks that are ready but not begun, and the bytes of live values.
//
// Messages to and from other ranks have lanes of their own, "sends" and "receives". If two messages overlap in time,
// the later one is in another lane, "sends 2". A message's details are its peer, tag and bytes.
std::string ChromeTrace(const Graph& graph, absl::Span<const TileTime> tiles);

// A kernel call, and the simulated makespan of the execution if this call took no time.
struct FreeNode {
  uint32_t call = 0;
  double seconds = 0;   // the sum of its tiles' times
  double makespan = 0;  // simulated without the call, on the same number of workers
};
struct FreeNodes {
  double makespan = 0;          // simulated with all kernel calls
  std::vector<FreeNode> nodes;  // at most `count`; the largest reduction of the makespan first
};
// Finds the kernel calls that would shorten the execution most if they took no time. Simulates only the likeliest 40
// calls, or the likeliest `count` if that is more. `policy` must have a queue.
FreeNodes FindFreeNodes(const Graph& graph, absl::Span<const TileTime> tiles, const Policy& policy, int workers,
                        size_t count);

}  // namespace weft

#endif  // WEFT_LAB_SCHEDULE_REPORT_H_
