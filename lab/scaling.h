// Predict estimates the time of a step under any policy on any number of workers. Its input is a Workload: the step's
// tasks, measured on one worker or read from a file.
//
//   std::vector<ScalingCase> cases = ScalingCases("critical-path", {1, 8, 64});
//   WEFT_ASSIGN_OR_RETURN(const Workload work, MeasureWorkload({.graph = {"gpt2"}}, absl::MakeSpan(cases)));
//   const Simulation simulation = Predict(work, cases[0], MeasureSharing({1, 2}));
#ifndef WEFT_LAB_SCALING_H_
#define WEFT_LAB_SCALING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/graph/schedule.h"
#include "weft/lab/machine/sharing.h"
#include "weft/lab/measured.h"
#include "weft/lab/real_graphs.h"
#include "weft/lab/simulate.h"

namespace weft {

// The tasks that are simulated.
struct Workload {
  Schedule schedule;           // with priorities from the cost model
  Schedule measured_schedule;  // with priorities from measured times
  std::vector<TaskCost> costs;
  std::vector<std::string> names;  // by task; empty strings for tasks without a name

  double seconds() const;        // of all tasks on one worker
  double critical_path() const;  // seconds
};

// These functions read and write the tasks of a Workload as JSON, so that they can be simulated again or elsewhere. The
// tasks need not come from a compiled graph.
//
//   {"weft_tasks": 1,
//    "tasks": [{"name": "load", "seconds": 1e-3, "bytes": 4e6}, {"name": "add", "seconds": 2e-4}],
//    "edges": [[0, 1]]}
//
// An edge leads from a task to a task that waits for it and is later in the list. "bytes" counts the bytes that a task
// reads from memory and writes to it. "parts" is the number of parts of a task that several workers can share. "bytes",
// "parts" and "name" are optional.
//
// ParseTasks returns InvalidArgument with the location in the file if the text is malformed. `from`: the file name for
// errors. PrintTasks writes the tasks in a serial order, and the joins of the schedule as tasks of 0 seconds.
absl::StatusOr<Workload> ParseTasks(const std::string& text, const std::string& from);
std::string PrintTasks(const Workload& workload);

// A policy and a number of workers. MeasureWorkload adds the times of real executions to `seconds`.
struct ScalingCase {
  const Policy* policy = nullptr;
  int workers = 1;
  std::vector<double> seconds = {};
};

// Returns a case for each number of `workers` under the policy called `policy` or, if `policy` is "all", under each
// policy.
std::vector<ScalingCase> ScalingCases(absl::string_view policy, absl::Span<const int> workers);

struct WorkloadOptions {
  GraphChoice graph;
  int64_t runs = 5;                  // number of executions on one worker; the result has their medians
  double tile_seconds = 0;           // minimum duration of a tile; 0: the compiler's default
  double cache_bytes = kCacheBytes;  // size of the cache that BytesOfCalls models
  bool reuse = true;                 // false: leaves out the edges that let values share bytes
};
// Measures a step on one worker. If a case of `cases` has at most as many workers as the machine has cores, also
// measures that case. Executions take turns, so that all cases meet the same load of the machine.
absl::StatusOr<Workload> MeasureWorkload(const WorkloadOptions& options, absl::Span<ScalingCase> cases = {});

// Returns the machine whose workers share it as `sharing` says. Empty: they lose nothing.
SimulatedMachine MachineOf(absl::Span<const SharingRow> sharing, int workers);

Simulation Predict(const Workload& workload, const ScalingCase& scaling_case, absl::Span<const SharingRow> sharing);

struct Prediction {
  const Policy* policy = nullptr;
  int workers = 1;
  double makespan = 0, speedup = 0, utilization = 0;  // speedup: against all tasks one after the other
  double bound = 0;                                   // seconds: MakespanBound, which no simulated makespan is below
  std::optional<double> measured;                     // median seconds of the case's real runs
  // Whether this is the policy's first number of workers that makes the step less than kMinSpeedup times as fast as the
  // number before it.
  bool saturated = false;
};
// Returns a prediction for each of `cases`, which must be in the order in which ScalingCases returns them.
std::vector<Prediction> PredictAll(const Workload& workload, absl::Span<const ScalingCase> cases,
                                   absl::Span<const SharingRow> sharing);

}  // namespace weft

#endif  // WEFT_LAB_SCALING_H_
