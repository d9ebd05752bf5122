// CallTimes estimates the earliest start of each kernel call by the cost model, as if there were unlimited workers.
// With these times, the memory plan reuses bytes without delaying the longest path.
#ifndef WEFT_GRAPH_CALL_TIMES_H_
#define WEFT_GRAPH_CALL_TIMES_H_

#include <cstdint>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

// A kernel call that overwrites bytes of other calls, its users. It waits until all tiles of its users have run. Users
// in its own group are an exception: they precede it tile by tile.
struct Reuse {
  uint32_t call = 0;
  uint32_t users = 0;  // index into Reuses::users
};
struct Reuses {
  std::vector<Reuse> reuses;                 // in ascending order of their calls
  std::vector<std::vector<uint32_t>> users;  // sets of kernel calls, each in ascending order
};

class CallTimes {
 public:
  // `graph` must outlive this object.
  explicit CallTimes(const CompiledGraph& graph);

  // Return the seconds of one tile of `call`, and of the longest path of data from its beginning to the end of the
  // execution.
  double seconds(uint32_t call) const { return seconds_[call]; }
  double tail(uint32_t call) const { return tails_[call]; }
  // Returns the seconds of the longest path of data through the graph.
  double data_path() const { return data_path_; }
  // Returns the earliest start of `call`, which waits for the producers of its inputs. `done`: the end of each call.
  double Begin(uint32_t call, const std::vector<double>& done) const;
  // Returns the seconds of the longest path if calls also wait for the users of bytes that they overwrite.
  double Path(const Reuses& reuses) const;

  // Returns the time at which the last of `calls` ends. Calls that are not in `done` don't count.
  static double Latest(const std::vector<uint32_t>& calls, const std::vector<double>& done);

 private:
  const CompiledGraph& graph_;
  std::vector<double> seconds_, tails_;           // by call
  std::vector<std::vector<uint32_t>> producers_;  // by call: the producers of its inputs
  double data_path_ = 0;
};

}  // namespace weft

#endif  // WEFT_GRAPH_CALL_TIMES_H_
