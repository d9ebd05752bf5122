// Computes longest paths over the kernel calls of a graph: to the end of the execution in the constructor, from its
// start in Path. Both rely on the order of the calls: producers come first.
#include "weft/graph/compile/call_times.h"

#include <algorithm>

namespace weft {

CallTimes::CallTimes(const CompiledGraph& graph) : producers_(graph.calls.size()) {
  constexpr uint32_t kNone = 0xffffffff;
  const Program& program = graph.program;
  std::vector<uint32_t> call_of(program.nodes.size(), kNone);
  for (uint32_t s = 0; s < graph.calls.size(); ++s) {
    const KernelCall& call = graph.calls[s];
    const uint32_t parts = PartCount(graph.groups[call.group], graph.tiles[call.first_tile]);
    seconds_.push_back(call.seconds / call.tile_count / parts);
    for (ValueId in : program.node(call.node).inputs) {
      const uint32_t producer = call_of[program.value(graph.storage_roots[in]).producer];
      if (producer != kNone) producers_[s].push_back(producer);  // inputs, parameters and constants have no call
    }
    call_of[call.node] = s;
  }
  tails_ = seconds_;  // from the last call to the first, each call raises its producers' tails
  for (uint32_t s = static_cast<uint32_t>(tails_.size()); s-- > 0;) {
    data_path_ = std::max(data_path_, tails_[s]);
    for (uint32_t producer : producers_[s]) {
      tails_[producer] = std::max(tails_[producer], seconds_[producer] + tails_[s]);
    }
  }
}

double CallTimes::Begin(uint32_t call, const std::vector<double>& done) const { return Latest(producers_[call], done); }

double CallTimes::Latest(const std::vector<uint32_t>& calls, const std::vector<double>& done) {
  double latest = 0;
  for (uint32_t call : calls) {
    if (call < done.size()) latest = std::max(latest, done[call]);
  }
  return latest;
}

double CallTimes::Path(const Reuses& reuses) const {
  double path = 0;
  std::vector<double> done;
  auto reuse = reuses.reuses.begin();
  for (uint32_t s = 0; s < seconds_.size(); ++s) {
    double begin = Begin(s, done);
    for (; reuse != reuses.reuses.end() && reuse->call == s; ++reuse) {
      begin = std::max(begin, Latest(reuses.users[reuse->users], done));
    }
    done.push_back(begin + seconds_[s]);
    path = std::max(path, done.back());
  }
  return path;
}

}  // namespace weft
