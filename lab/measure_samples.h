// These functions measure the kernel calls of named graphs on one worker, as samples for Calibration::Fit.
//
//   WEFT_ASSIGN_OR_RETURN(const std::vector<TileSample> samples, MeasureCalibrationSamples(/*runs=*/5));
//   const Calibration calibration = Calibration::Fit(samples);
#ifndef WEFT_LAB_MEASURE_SAMPLES_H_
#define WEFT_LAB_MEASURE_SAMPLES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/lab/calibration.h"
#include "weft/lab/graph_choice.h"

namespace weft {

// Returns a sample of each kernel call of a graph. Its time is computed from the median
// time of each tile over `runs` executions.
absl::StatusOr<std::vector<TileSample>> MeasureSamples(const GraphChoice& graph, int64_t runs);

// Returns the samples of all CalibrationGraphNames(), in f32 and in bf16.
absl::StatusOr<std::vector<TileSample>> MeasureCalibrationSamples(int64_t runs);

}  // namespace weft

#endif  // WEFT_LAB_MEASURE_SAMPLES_H_
