// When the calls of a graph could run, by the cost model and with as many workers as there are tiles.
#ifndef WEFT_GRAPH_CALL_TIMES_H_
#define WEFT_GRAPH_CALL_TIMES_H_

#include <cstdint>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

// A call overwrites bytes that others use: all of these come before any tile of it, but for those of its own group,
// which come before it tile by tile.
struct Reuse {
  uint32_t call = 0;
  uint32_t users = 0;  // Reuses::users
};
struct Reuses {
  std::vector<Reuse> reuses;                 // by call
  std::vector<std::vector<uint32_t>> users;  // sets of calls, rising
};

class CallTimes {
 public:
  explicit CallTimes(const CompiledGraph& graph);  // which must last

  // Seconds of a tile, and of the longest path of data from a call's beginning to the end of the run.
  double seconds(uint32_t call) const { return seconds_[call]; }
  double tail(uint32_t call) const { return tails_[call]; }
  double data_path() const { return data_path_; }  // seconds
  // When those that make what a call reads are done, if calls before it are `done` by then.
  double Begin(uint32_t call, const std::vector<double>& done) const;
  // Seconds of the longest path where calls wait for those whose bytes they take.
  double Path(const Reuses& reuses) const;

  // When all of the calls that are in `done` are.
  static double Latest(const std::vector<uint32_t>& calls, const std::vector<double>& done);

 private:
  const CompiledGraph& graph_;
  std::vector<double> seconds_, tails_;        // by call
  std::vector<std::vector<uint32_t>> makers_;  // by call: of what it reads
  double data_path_ = 0;
};

}  // namespace weft

#endif  // WEFT_GRAPH_CALL_TIMES_H_
