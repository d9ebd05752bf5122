#include "weft/lab/ranks/group_costs.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "weft/core/op.h"
#include "weft/lab/measured.h"

namespace weft {
namespace {

// Returns a key of a group. Groups of equal kernel calls have equal keys.
std::string Signature(const CompiledGraph& graph, const Group& group) {
  std::string text = absl::StrCat(group.tile_count);
  for (uint32_t s = group.first_call; s < group.end_call(); ++s) {
    const Node& node = graph.program.node(graph.calls[s].node);
    absl::StrAppend(&text, " ", node.op->name, ToString(TypeSpan(graph.program.InputTypes(node))),
                    ToString(TypeSpan(graph.program.OutputTypes(node))));
  }
  return text;
}

}  // namespace

void GroupCosts::Add(const Graph& graph, absl::Span<const TileTime> tiles) {
  const CompiledGraph& compiled = graph.compiled();
  const std::vector<double> calls = CallSeconds(graph, tiles);
  for (const Group& group : compiled.groups) {
    Mean& mean = groups_[Signature(compiled, group)];
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) mean.sum += calls[s];
    mean.count += 1;
  }
  std::vector<TileSample> samples = Samples(graph, calls);
  samples_.insert(samples_.end(), std::make_move_iterator(samples.begin()), std::make_move_iterator(samples.end()));
}

std::vector<double> GroupCosts::TaskSeconds(const Graph& graph) {
  if (!samples_.empty() && !calibration_) calibration_ = Calibration::Fit(samples_);
  const CompiledGraph& compiled = graph.compiled();
  std::vector<double> seconds = calibration_->TaskSeconds(graph);
  for (const Group& group : compiled.groups) {
    const bool has_messages = !compiled.calls[group.first_call].messages.empty();
    const auto measured = groups_.find(Signature(compiled, group));
    if (!has_messages && measured == groups_.end()) continue;
    const double known = has_messages ? 0 : measured->second.sum / measured->second.count / group.tile_count;
    std::fill_n(seconds.begin() + group.first_task, group.tile_count, known);
  }
  return seconds;
}

}  // namespace weft
