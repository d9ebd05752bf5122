// A timed run as one HTML page that needs nothing else: where each tile ran, how busy the workers were, what was on the
// critical path, memory over time against the plan, and which nodes would shorten the run most if they took no time.
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
#include "weft/graph/runner.h"
#include "weft/lab/calibration.h"

namespace weft {

struct ReportOptions {
  std::string title;
  const Policy* policy = &kCriticalPath;  // of the run
  int workers = 1;                        // that it had
  const Calibration* calibration =
      nullptr;  // the estimates that measured times are compared with; null: the cost model
};

std::string ScheduleReport(const Graph& graph, absl::Span<const TileTime> tiles, const ReportOptions& options);

// A node whose time would make the run shorter by more than others' if it took none.
struct FreeNode {
  uint32_t call = 0;
  double seconds = 0;   // of its tiles together
  double makespan = 0;  // without it, simulated on the same number of workers
};
struct FreeNodes {
  double makespan = 0;          // of a simulation with all of them
  std::vector<FreeNode> nodes;  // at most `count`, what shortens the run most first
};
// The policy is one that has a queue.
FreeNodes FindFreeNodes(const Graph& graph, absl::Span<const TileTime> tiles, const Policy& policy, int workers,
                        size_t count);

}  // namespace weft

#endif  // WEFT_LAB_SCHEDULE_REPORT_H_
