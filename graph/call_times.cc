#include "weft/graph/call_times.h"

#include <algorithm>

#include "weft/graph/cost.h"

namespace weft {

CallTimes::CallTimes(const CompiledGraph& graph) : graph_(graph), makers_(graph.calls.size()) {
  constexpr uint32_t kNone = 0xffffffff;
  const Program& program = graph.program;
  std::vector<uint32_t> call_of(program.nodes.size(), kNone);
  for (uint32_t s = 0; s < graph.calls.size(); ++s) {
    const Node& node = program.node(graph.calls[s].node);
    const Types inputs = program.InputTypes(node), outputs = program.OutputTypes(node);
    seconds_.push_back(Seconds(*node.op, {node.attrs, inputs, outputs}) / graph.calls[s].tile_count);
    for (ValueId in : node.inputs) {
      const NodeId producer = program.value(graph.storage_roots[static_cast<size_t>(in)]).producer;
      const uint32_t maker = call_of[static_cast<size_t>(producer)];
      if (maker != kNone) makers_[s].push_back(maker);  // else an input, a parameter, a constant
    }
    call_of[static_cast<size_t>(graph.calls[s].node)] = s;
  }
  tails_ = seconds_;  // and then each adds itself to those that it waits for
  for (uint32_t s = static_cast<uint32_t>(tails_.size()); s-- > 0;) {
    data_path_ = std::max(data_path_, tails_[s]);
    for (uint32_t maker : makers_[s]) tails_[maker] = std::max(tails_[maker], seconds_[maker] + tails_[s]);
  }
}

double CallTimes::Begin(uint32_t call, const std::vector<double>& done) const { return Latest(makers_[call], done); }

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
