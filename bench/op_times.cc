#include "weft/bench/op_times.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace weft {

void OpTimes::Add(absl::Span<const TileTime> tiles) {
  const std::vector<KernelCall>& calls = graph_.compiled().calls;
  for (size_t s = 0; s < calls.size(); ++s) {
    for (const TileTime& tile : tiles.subspan(calls[s].first_tile, calls[s].tile_count)) {
      seconds_[s] += static_cast<double>(tile.end - tile.begin) * 1e-9;
    }
  }
}

std::vector<OpTimes::Row> OpTimes::Rows() const {
  const CompiledGraph& graph = graph_.compiled();
  std::map<std::pair<std::string, std::string>, Row> rows;
  std::map<std::string, double> seconds;  // by op
  for (size_t i = 0; i < seconds_.size(); ++i) {
    const Node& node = graph.program.node(graph.calls[i].node);
    const Types inputs = graph.program.InputTypes(node), outputs = graph.program.OutputTypes(node);
    const Cost cost = CostOf(*node.op, {node.attrs, inputs, outputs});
    const std::string type = outputs.empty() ? "" : ToString(outputs[0]);
    Row& row = rows[{node.op->name, type}];
    row.op = node.op->name;
    row.type = type;
    row.seconds += seconds_[i];
    seconds[row.op] += seconds_[i];
    row.flops += cost.flops;
    row.bytes += cost.bytes;
    row.tiles += graph.calls[i].tile_count;
  }
  std::vector<Row> sorted;
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Row& a, const Row& b) {
    return std::tuple(-seconds[a.op], a.op, -a.seconds) < std::tuple(-seconds[b.op], b.op, -b.seconds);
  });
  return sorted;
}

}  // namespace weft
