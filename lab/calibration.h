// A Calibration estimates the times of kernel calls on this machine, with rates fitted to measured times. Priorities
// and reports use these estimates. Tiles don't, so no bit of any result changes.
//
//   const Calibration calibration = Calibration::Fit(Samples(graph, CallSeconds(graph, times.tiles())));
//   const Graph scheduled = WithTimes(other, calibration.TaskSeconds(other));
#ifndef WEFT_LAB_CALIBRATION_H_
#define WEFT_LAB_CALIBRATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/graph/graph.h"

namespace weft {

// A sample is one kernel call of a graph. All its figures are means over the call's tiles.
struct TileSample {
  std::string kind;             // the op and the type of its first input: "matmul f32"
  double flops = 0, bytes = 0;  // computed by the op's cost function
  double memory_bytes = 0;      // bytes of operands that come from memory, not from a cache
  double model_seconds = 0;     // estimate of the cost model that cuts tiles (graph/cost.h)
  double seconds = 0;           // measured
  uint32_t tiles = 1;           // the number of tiles of the kernel call
  double weight = 1;            // weight in a fit; the calls of one kind in a graph have weights that sum to 1
};
// Returns a sample of each kernel call. If `call_seconds` is empty, the samples have no measured times.
std::vector<TileSample> Samples(const Graph& graph, absl::Span<const double> call_seconds);

class Calibration {
 public:
  // Seconds of a tile = tile + flop * FLOPs + byte * bytes + memory_byte * memory_bytes; no rate is negative.
  struct Rates {
    double tile = 0, flop = 0, byte = 0, memory_byte = 0;
  };

  // Finds for each kind the rates with the minimum sum of errors |log(estimated / measured)| over its samples.
  static Calibration Fit(absl::Span<const TileSample> samples);
  // Reads the result of ToJson. Returns InvalidArgument if `text` is not a calibration. `from`: the file's name, for
  // errors.
  static absl::StatusOr<Calibration> FromJson(const std::string& text, const std::string& from);
  std::string ToJson() const;

  // Estimates the seconds of one tile. A kind without samples gets the estimate of the cost model, times the median of
  // measured time / estimate over all samples.
  double Seconds(const TileSample& sample) const;
  std::vector<double> TaskSeconds(const Graph& graph) const;  // by task, 0 for joins

 private:
  std::map<std::string, Rates> rates_;
  double others_ = 1;  // for kinds without samples: factor on the cost model's seconds
};

// Compares estimated with measured times of the kernel calls of a kind. "off" is |estimate - measured| / measured.
struct KindError {
  std::string kind;
  int calls = 0;
  double seconds = 0, estimate = 0;  // sums over these calls
  double median_off = 0;
};
struct EstimateErrors {
  std::vector<KindError> kinds;  // the kind with the longest total time first
  double median_off = 0;         // over all kernel calls
};
// Compares `calibration` or, if it is null, the cost model that cuts tiles, with measured times.
EstimateErrors CompareEstimates(absl::Span<const TileSample> samples, const Calibration* calibration);

}  // namespace weft

#endif  // WEFT_LAB_CALIBRATION_H_
