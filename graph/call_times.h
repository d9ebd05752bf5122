// CallTimes estimates, with the cost model, the earliest start of each kernel call if workers were unlimited. The
// memory plan uses it to reuse bytes without delaying the longest path.
#ifndef WEFT_GRAPH_CALL_TIMES_H_
#define WEFT_GRAPH_CALL_TIMES_H_

#include <cstdint>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

// A kernel call that overwrites bytes of other calls, its users. All tiles of the users run before any of its own
// tiles, except users in its own group, which precede it tile by tile.
struct Reuse {
  uint32_t call = 0;
  uint32_t users = 0;  // index into Reuses::users
};
struct Reuses {
  std::vector<Reuse> reuses;                 // in rising order of their calls
  std::vector<std::vector<uint32_t>> users;  // sets of kernel calls, each in rising order
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
  // Returns the earliest begin of `call`: when the producers of its inputs are done. `done`: by call, when it is done.
  double Begin(uint32_t call, const std::vector<double>& done) const;
  // Returns the seconds of the longest path if calls also wait for the users of the bytes that they overwrite.
  double Path(const Reuses& reuses) const;

  // Returns when the last of `calls` is done. Calls that are not in `done` don't count.
  static double Latest(const std::vector<uint32_t>& calls, const std::vector<double>& done);

 private:
  const CompiledGraph& graph_;
  std::vector<double> seconds_, tails_;           // by call
  std::vector<std::vector<uint32_t>> producers_;  // by call: of its inputs
  double data_path_ = 0;
};

}  // namespace weft

#endif  // WEFT_GRAPH_CALL_TIMES_H_
