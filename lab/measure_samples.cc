#include "weft/lab/measure_samples.h"

#include <iterator>
#include <string>
#include <utility>

#include "weft/core/dtype.h"
#include "weft/core/status.h"
#include "weft/lab/measured.h"
#include "weft/lab/real_graphs.h"
#include "weft/lab/timed_step.h"

namespace weft {

absl::StatusOr<std::vector<TileSample>> MeasureSamples(const GraphChoice& graph, int64_t runs) {
  WEFT_ASSIGN_OR_RETURN(const TimedStep step, TimedStep::Create({.graph = graph, .threads = 1}));
  WEFT_ASSIGN_OR_RETURN(const RunTimes times, MeasureOnOneWorker(step.graph(), step.feeds(), step.parameters(), runs));
  return Samples(step.graph(), CallSeconds(step.graph(), times.tiles()));
}

absl::StatusOr<std::vector<TileSample>> MeasureCalibrationSamples(int64_t runs) {
  std::vector<TileSample> samples;
  for (const DType precision : {kF32, kBF16}) {
    for (const std::string& name : CalibrationGraphNames()) {
      WEFT_ASSIGN_OR_RETURN(std::vector<TileSample> more, MeasureSamples({name, precision}, runs));
      std::move(more.begin(), more.end(), std::back_inserter(samples));
    }
  }
  return samples;
}

}  // namespace weft
