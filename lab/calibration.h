// A Calibration estimates the time of a tile on this machine, with rates fitted to measured times. Priorities and
// reports use these estimates. The division into tiles does not, so no bit of any result changes.
//
//   const Calibration calibration = Calibration::Fit(Samples(graph, CallSeconds(graph, times.tiles())));
//   const Graph scheduled = WithTimes(other, calibration.TaskSeconds(other));
#ifndef WEFT_LAB_CALIBRATION_H_
#define WEFT_LAB_CALIBRATION_H_

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/lab/machine/sharing.h"
#include "weft/lab/network.h"

namespace weft {

// A sample describes one kernel call of a graph. Its FLOPs, bytes and seconds are means over the call's tiles.
struct TileSample {
  std::string kind;             // the op and the type of its first input: "matmul f32"
  double flops = 0, bytes = 0;  // computed by the op's cost function
  double memory_bytes = 0;      // bytes of operands that come from memory, not from a cache
  double model_seconds = 0;     // estimate of the cost model that cuts tiles (graph/compile/cost.h)
  double seconds = 0;           // measured
  uint32_t tiles = 1;           // the number of tiles of the kernel call
  double weight = 1;            // weight in a fit; the calls of one kind in a graph have weights that sum to 1
};
// Returns a sample of each kernel call. `call_seconds`: the measured time of each call, summed over its tiles. If it is
// empty, the samples have no measured times. Calls with messages have no measured times either, because their times
// depend on other ranks.
std::vector<TileSample> Samples(const Graph& graph, absl::Span<const double> call_seconds);

// The seconds of a tile are rates[0] + rates[1] * FLOPs + rates[2] * bytes + rates[3] * memory_bytes. No rate is
// negative.
using TileRates = std::array<double, 4>;

class Calibration {
 public:
  // Finds, for each kind, the rates that minimise the weighted sum of |log(estimated / measured)| over the samples of
  // the kind. Samples without a measured time do not count.
  static Calibration Fit(absl::Span<const TileSample> samples);
  // Reads the result of ToJson. Returns InvalidArgument if `text` is not a calibration. `from`: the file's name, for
  // errors.
  static absl::StatusOr<Calibration> FromJson(const std::string& text, const std::string& from);
  std::string ToJson() const;

  // Estimates the seconds of one tile. If no sample had the tile's kind, returns `model_seconds` times a factor: the
  // median of measured time / `model_seconds` over all samples.
  double Seconds(const TileSample& sample) const;
  std::vector<double> TaskSeconds(const Graph& graph) const;  // by task, 0 for joins

  // Reports whether the calibration has times of ops or a factor on the cost model. A file may contain only the
  // network or the figures of sharing.
  bool has_costs() const { return !rates_.empty() || others_ != 1; }
  // The measured network between ranks, if there is one.
  const std::optional<Network>& network() const { return network_; }
  void set_network(const Network& network) { network_ = network; }
  // What workers lose by sharing the machine, in ascending order of threads. Empty: not measured.
  const std::vector<SharingRow>& sharing() const { return sharing_; }
  void set_sharing(std::vector<SharingRow> sharing) { sharing_ = std::move(sharing); }

 private:
  std::map<std::string, TileRates> rates_;
  std::optional<Network> network_;
  std::vector<SharingRow> sharing_;
  double others_ = 1;  // for kinds without samples: factor on the cost model's seconds
};

// Compares estimated with measured times of the kernel calls of a kind. `median_off` is the median of |estimated -
// measured| / measured.
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
// Compares the estimates of `calibration` with the measured times. If `calibration` is null, compares those of the cost
// model (graph/compile/cost.h).
EstimateErrors CompareEstimates(absl::Span<const TileSample> samples, const Calibration* calibration);

// Returns the number `key` of `object`, or -1 if its value is not a number from 0 to `max`. If there is no such key,
// returns `absent`.
double NumberUpTo(double max, const nlohmann::json& object, const char* key, double absent = -1);

}  // namespace weft

#endif  // WEFT_LAB_CALIBRATION_H_
