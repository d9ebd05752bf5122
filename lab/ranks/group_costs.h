// GroupCosts estimates the times of the tasks of a graph from measured times of other graphs. If a group of kernel
// calls was measured in another graph, it has the same time here. The times of other groups are estimates of a
// calibration, which is fitted to all measured kernel calls.
//
//   GroupCosts costs;
//   costs.Add(measured_graph, times.tiles());
//   const std::vector<double> seconds = costs.TaskSeconds(graph);
#ifndef WEFT_LAB_RANKS_GROUP_COSTS_H_
#define WEFT_LAB_RANKS_GROUP_COSTS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/runner.h"
#include "weft/lab/calibration.h"

namespace weft {

class GroupCosts {
 public:
  GroupCosts() = default;
  // Creates an object without measurements: all times are estimates of `calibration`.
  explicit GroupCosts(Calibration calibration) : calibration_(std::move(calibration)) {}

  // Adds the times of an execution on one worker.
  void Add(const Graph& graph, absl::Span<const TileTime> tiles);
  // Returns the seconds of each task; 0 for joins and messages.
  std::vector<double> TaskSeconds(const Graph& graph);

 private:
  struct Mean {
    double sum = 0, count = 0;
  };

  absl::flat_hash_map<std::string, Mean> groups_;  // by ops, types and tiles: the seconds of a group
  std::vector<TileSample> samples_;
  std::optional<Calibration> calibration_;  // fitted to samples_, unless the caller gave it
};

}  // namespace weft

#endif  // WEFT_LAB_RANKS_GROUP_COSTS_H_
