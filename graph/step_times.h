// When the steps of a graph could run, by the cost model and with as many workers as there are tiles.
#ifndef WEFT_GRAPH_STEP_TIMES_H_
#define WEFT_GRAPH_STEP_TIMES_H_

#include <cstdint>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

// A step overwrites bytes that others use: all of these come before any tile of it, but for those of its own group,
// which come before it tile by tile.
struct Reuse {
  uint32_t step = 0;
  uint32_t users = 0;  // Reuses::users
};
struct Reuses {
  std::vector<Reuse> reuses;                 // by step
  std::vector<std::vector<uint32_t>> users;  // sets of steps, rising
};

class StepTimes {
 public:
  explicit StepTimes(const CompiledGraph& graph);  // which must last

  // Seconds of a tile, and of the longest path of data from a step's beginning to the end of the run.
  double seconds(uint32_t step) const { return seconds_[step]; }
  double tail(uint32_t step) const { return tails_[step]; }
  double data_path() const { return data_path_; }  // seconds
  // When those that make what a step reads are done, if steps before it are `done` by then.
  double Begin(uint32_t step, const std::vector<double>& done) const;
  // Seconds of the longest path where steps wait for those whose bytes they take.
  double Path(const Reuses& reuses) const;

  // When all of the steps that are in `done` are.
  static double Latest(const std::vector<uint32_t>& steps, const std::vector<double>& done);

 private:
  const CompiledGraph& graph_;
  std::vector<double> seconds_, tails_;        // by step
  std::vector<std::vector<uint32_t>> makers_;  // by step: of what it reads
  double data_path_ = 0;
};

}  // namespace weft

#endif  // WEFT_GRAPH_STEP_TIMES_H_
