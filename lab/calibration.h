// What ops take on this machine, fitted to what they took: for priorities and pictures. Tiles never depend on it.
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

// One kernel call of a graph: a tile of it, at the mean.
struct TileSample {
  std::string kind;             // the op and what it reads first: "matmul f32"
  double flops = 0, bytes = 0;  // by the op's own count
  double memory_bytes = 0;      // of operands that are in no cache
  double model_seconds = 0;     // by the cost model that cuts tiles (graph/cost.h)
  double seconds = 0;           // what it took
  uint32_t tiles = 1;           // of the kernel call
  double weight = 1;            // in a fit: all kernel calls of a kind in a graph count as much as one
};
// By kernel call; without what they took if `call_seconds` is empty.
std::vector<TileSample> Samples(const Graph& graph, absl::Span<const double> call_seconds);

class Calibration {
 public:
  // Seconds of a tile = tile + flop * FLOPs + byte * bytes + memory_byte * memory_bytes; none of them is below zero.
  struct Rates {
    double tile = 0, flop = 0, byte = 0, memory_byte = 0;
  };

  // For each kind the rates whose errors, |log(expected / measured)|, have the least sum over its samples.
  static Calibration Fit(absl::Span<const TileSample> samples);
  // As ToJson made it, else InvalidArgument; `from` is named in errors.
  static absl::StatusOr<Calibration> FromJson(const std::string& text, const std::string& from);
  std::string ToJson() const;

  // Of one tile. A kind that wasn't there is taken to be as far from the cost model as the others are at the median.
  double Seconds(const TileSample& sample) const;
  std::vector<double> TaskSeconds(const Graph& graph) const;  // by task, 0 for joins

 private:
  std::map<std::string, Rates> rates_;
  double others_ = 1;  // times the cost model's seconds
};

// Estimates beside what was measured, of the kernel calls of a kind. "off" is how far the estimate is from what a call
// took, as a part of that.
struct KindError {
  std::string kind;
  int calls = 0;
  double seconds = 0, estimate = 0;  // of all of them together
  double median_off = 0;
};
struct EstimateErrors {
  std::vector<KindError> kinds;  // those that take longest first
  double median_off = 0;         // of all kernel calls
};
// Null: the cost model that cuts tiles.
EstimateErrors CompareEstimates(absl::Span<const TileSample> samples, const Calibration* calibration);

}  // namespace weft

#endif  // WEFT_LAB_CALIBRATION_H_
