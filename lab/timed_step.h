// A TimedStep compiles a graph of lab/real_graphs.h, runs it, and measures the time of every tile.
//
//   WEFT_ASSIGN_OR_RETURN(TimedStep step, TimedStep::Create({.graph = {"gpt2"}, .threads = 2}));
//   WEFT_RETURN_IF_ERROR(step.Run(/*runs=*/3));
//   const std::string trace = ChromeTrace(step.graph(), step.tiles());
#ifndef WEFT_LAB_TIMED_STEP_H_
#define WEFT_LAB_TIMED_STEP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"
#include "weft/lab/calibration.h"
#include "weft/lab/measured.h"
#include "weft/lab/real_graphs.h"

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

}  // namespace weft

#endif  // WEFT_LAB_TIMED_STEP_H_
