// A TimedStep compiles a graph of lab/real_graphs.h, runs it, and measures the time of every tile.
//
//   WEFT_ASSIGN_OR_RETURN(TimedStep step, TimedStep::Create({.graph = {"gpt2"}, .threads = 2}));
//   WEFT_RETURN_IF_ERROR(step.Run(/*runs=*/3));
//   const std::string trace = ChromeTrace(step.graph(), step.tiles());
//
// Predict estimates the time of a step under any policy on any number of workers. Its input is a Workload: the step's
// tasks, measured on one worker or read from a file.
//
//   std::vector<ScalingCase> cases = ScalingCases("critical-path", {1, 8, 64});
//   WEFT_ASSIGN_OR_RETURN(const Workload work, MeasureWorkload({.graph = {"gpt2"}}, absl::MakeSpan(cases)));
//   const Simulation simulation = Predict(work, cases[0], MeasureSharing({1, 2}));
#ifndef WEFT_LAB_TIMED_STEP_H_
#define WEFT_LAB_TIMED_STEP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"
#include "weft/graph/schedule.h"
#include "weft/lab/calibration.h"
#include "weft/lab/machine/sharing.h"
#include "weft/lab/measured.h"
#include "weft/lab/real_graphs.h"
#include "weft/lab/simulate.h"

namespace weft {

struct TimedStepOptions {
  GraphChoice graph;
  const Policy* policy = &kCriticalPath;
  int threads = 0;                         // number of workers; 0: one for each core; the serial policy has one
  double tile_seconds = 0;                 // minimum duration of a tile; 0: the compiler's default
  std::optional<Calibration> calibration;  // sets priorities that are not measured; if unset, the cost model does
};

class TimedStep {
 public:
  // Records and compiles the graph. If the policy takes priorities from measured times, runs the graph to measure them.
  static absl::StatusOr<TimedStep> Create(const TimedStepOptions& options);

  const Graph& graph() const { return *graph_; }
  DType precision() const { return recorded_->options.precision; }
  absl::Span<const FeedPair> feeds() const { return recorded_->batch.feeds; }
  Parameters* parameters() const { return parameters_.get(); }
  const Policy& policy() const { return *policy_; }
  int threads() const { return threads_; }

  // Runs the step `runs` times in a row.
  absl::Status Run(int64_t runs);
  double seconds() const { return seconds_; }                  // of the last execution
  absl::Span<const TileTime> tiles() const { return tiles_; }  // of the last execution
  double utilization() const;                                  // fraction of the workers' time that is spent in tiles

  // Runs `pairs` pairs of executions, one with timing and one without. Returns each pair's ratio of the time with
  // timing to the time without, sorted.
  absl::StatusOr<std::vector<double>> TimingOverhead(int64_t pairs) const;

  // Returns a sample of each kernel call. Its time is computed from the median time of each tile over `runs` executions
  // on one worker.
  absl::StatusOr<std::vector<TileSample>> MeasureSamples(int64_t runs) const;

 private:
  TimedStep() = default;

  std::unique_ptr<RealGraph> recorded_;
  std::unique_ptr<Parameters> parameters_;
  std::optional<Graph> graph_;
  const Policy* policy_ = nullptr;
  int threads_ = 1;
  double seconds_ = 0;
  std::vector<TileTime> tiles_;
};

// Returns the samples of all CalibrationGraphNames(), in f32 and in bf16, for Calibration::Fit.
absl::StatusOr<std::vector<TileSample>> MeasureCalibrationSamples(int64_t runs);

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
// Measures a step on one worker. Also measures those of `cases` for whose workers the machine has enough cores. The
// executions of all cases take turns, so that all meet the same load of the machine.
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

#endif  // WEFT_LAB_TIMED_STEP_H_
