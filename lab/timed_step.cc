#include "weft/lab/timed_step.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/graph/compile/compile.h"
#include "weft/lab/machine/measure.h"

namespace weft {

absl::StatusOr<TimedStep> TimedStep::Create(const TimedStepOptions& options) {
  TimedStep step;
  WEFT_ASSIGN_OR_RETURN(step.recorded_, RecordGraph(options.graph));
  RealGraph& recorded = *step.recorded_;
  if (options.tile_seconds > 0) recorded.options.tile_seconds = options.tile_seconds;
  WEFT_ASSIGN_OR_RETURN(step.graph_, Compile(*recorded.tape, recorded.options));
  step.parameters_ = std::make_unique<Parameters>(Parameters::Options{.seed = 1});
  step.policy_ = options.policy;
  if (options.policy->measured) {
    WEFT_ASSIGN_OR_RETURN(step.graph_, WithMeasuredTimes(*step.graph_, recorded.batch.feeds, step.parameters_.get()));
  } else if (options.calibration) {
    step.graph_ = WithTimes(*step.graph_, options.calibration->TaskSeconds(*step.graph_));
  }
  step.threads_ = options.policy == &kSerial ? 1 : options.threads > 0 ? options.threads : Cores();
  return step;
}

absl::Status TimedStep::Run(int64_t runs) {
  Runner runner(*graph_, parameters_.get(), {.threads = threads_, .policy = policy_, .timed = true});
  for (int64_t run = 0; run < runs; ++run) {
    const Clock::time_point start = Clock::now();
    WEFT_RETURN_IF_ERROR(runner.Run(feeds()).status());
    seconds_ = SecondsSince(start);
  }
  tiles_ = {runner.tile_times().begin(), runner.tile_times().end()};
  return absl::OkStatus();
}

double TimedStep::utilization() const {
  double busy = 0;
  for (const TileTime& tile : tiles_) {
    if (tile.worker >= 0) busy += static_cast<double>(tile.end - tile.begin) * 1e-9;  // else a message
  }
  return busy / (threads_ * seconds_);
}

absl::StatusOr<std::vector<double>> TimedStep::TimingOverhead(int64_t pairs) const {
  const auto make = [&](bool timed) {
    return std::make_unique<Runner>(*graph_, parameters_.get(),
                                    RunnerOptions{.threads = threads_, .policy = policy_, .timed = timed});
  };
  const std::unique_ptr<Runner> runners[] = {make(false), make(true)};
  std::vector<double> ratios;
  for (int64_t pair = -1; pair < pairs; ++pair) {  // the first pair is not counted, because it touches memory first
    double seconds[2];
    for (int64_t i : {0, 1}) {
      const int64_t timed = (i + pair) & 1;  // the two kinds take turns in running first
      const Clock::time_point start = Clock::now();
      WEFT_RETURN_IF_ERROR(runners[timed]->Run(feeds()).status());
      seconds[timed] = SecondsSince(start);
    }
    if (pair >= 0) ratios.push_back(seconds[1] / seconds[0]);
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

absl::StatusOr<std::vector<TileSample>> TimedStep::MeasureSamples(int64_t runs) const {
  WEFT_ASSIGN_OR_RETURN(const RunTimes times, MeasureOnOneWorker(*graph_, feeds(), parameters_.get(), runs));
  return Samples(*graph_, CallSeconds(*graph_, times.tiles()));
}

absl::StatusOr<std::vector<TileSample>> MeasureCalibrationSamples(int64_t runs) {
  std::vector<TileSample> samples;
  for (const DType precision : {kF32, kBF16}) {
    for (const std::string& name : CalibrationGraphNames()) {
      WEFT_ASSIGN_OR_RETURN(const TimedStep step, TimedStep::Create({.graph = {name, precision}, .threads = 1}));
      WEFT_ASSIGN_OR_RETURN(std::vector<TileSample> more, step.MeasureSamples(runs));
      std::move(more.begin(), more.end(), std::back_inserter(samples));
    }
  }
  return samples;
}

}  // namespace weft
