// CallTimes estimates when kernel calls can start, by the cost model and as if there were unlimited workers. With these
// times, the memory plan avoids reuses of bytes that would lengthen the longest path.
#ifndef WEFT_GRAPH_COMPILE_CALL_TIMES_H_
#define WEFT_GRAPH_COMPILE_CALL_TIMES_H_

#include <cstdint>
#include <vector>

#include "weft/graph/compile/stages.h"
#include "weft/graph/graph.h"

namespace weft {

class CallTimes {
 public:
  explicit CallTimes(const CompiledGraph& graph);

  // seconds() returns the mean duration of one part of a tile of `call`. tail() returns the length in seconds of the
  // longest path of data dependencies from the start of `call` to the end of the execution.
  double seconds(uint32_t call) const { return seconds_[call]; }
  double tail(uint32_t call) const { return tails_[call]; }
  // Returns the length in seconds of the longest path of data dependencies through the graph.
  double data_path() const { return data_path_; }
  // Returns when `call` can start: once the producers of its inputs have ended. `done`: when each earlier call ends, in
  // seconds.
  double Begin(uint32_t call, const std::vector<double>& done) const;
  // Returns the length in seconds of the longest path if calls also wait for the users of bytes that they overwrite.
  double Path(const Reuses& reuses) const;

  // Returns when the last of `calls` ends, or 0. `done`: by call, when it ends, in seconds. Ignores calls that are not
  // in `done`.
  static double Latest(const std::vector<uint32_t>& calls, const std::vector<double>& done);

 private:
  std::vector<double> seconds_, tails_;           // by call
  std::vector<std::vector<uint32_t>> producers_;  // by call: the producers of its inputs
  double data_path_ = 0;
};

}  // namespace weft

#endif  // WEFT_GRAPH_COMPILE_CALL_TIMES_H_
