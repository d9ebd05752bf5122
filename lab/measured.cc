#include "weft/graph/measured.h"

#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "weft/core/status.h"

namespace weft {

std::vector<double> TaskSeconds(const Graph& graph, absl::Span<const TileTime> tiles) {
  const CompiledGraph& compiled = graph.compiled();
  std::vector<double> seconds(compiled.tasks.size(), 0);
  for (size_t t = 0; t < seconds.size(); ++t) {
    const Task& task = compiled.tasks[t];
    if (task.group == Task::kJoin) continue;
    const Group& group = compiled.groups[task.group];
    for (uint32_t s = group.first_step; s < group.end_step(); ++s) {
      const TileTime& tile = tiles[compiled.steps[s].first_tile + task.tile];
      seconds[t] += static_cast<double>(tile.end - tile.begin) * 1e-9;
    }
  }
  return seconds;
}

std::vector<TaskCost> TaskCosts(const Graph& graph, absl::Span<const double> task_seconds, double cache) {
  const CompiledGraph& compiled = graph.compiled();
  std::vector<TaskCost> costs;
  for (double seconds : task_seconds) costs.push_back({.seconds = seconds});
  absl::flat_hash_map<std::tuple<Place::Kind, uint32_t, size_t>, double> touched;  // a place → when, in bytes before it
  double now = 0;
  for (const Group& group : compiled.groups) {
    double bytes = 0;
    for (uint32_t s = group.first_step; s < group.end_step(); ++s) {
      const Node& node = compiled.program.node(compiled.steps[s].node);
      const auto touch = [&](ValueId id) {
        const Place& place = compiled.places[static_cast<size_t>(id)];
        const double size = static_cast<double>(compiled.program.value(id).type.bytes());
        const auto [last, first] = touched.try_emplace({place.kind, place.index, place.offset}, now);
        if (first || now - last->second > cache) bytes += size;
        now += size;
        last->second = now;
      };
      for (ValueId in : node.inputs) touch(in);
      for (uint32_t i = 0; i < node.output_count; ++i) touch(node.output(i));
    }
    for (uint32_t t = 0; t < group.tile_count; ++t) costs[group.first_task + t].bytes = bytes / group.tile_count;
  }
  return costs;
}

Graph WithTimes(const Graph& graph, absl::Span<const double> task_seconds) {
  auto measured = std::make_shared<CompiledGraph>(graph.compiled());
  measured->schedule = WithSeconds(std::move(measured->schedule), task_seconds);
  return Graph(std::move(measured));
}

absl::StatusOr<Graph> WithMeasuredTimes(const Graph& graph, absl::Span<const FeedPair> feeds, Parameters* parameters) {
  Runner runner(graph, parameters, {.threads = 1, .timed = true});
  for (int run = 0; run < 2; ++run) WEFT_RETURN_IF_ERROR(runner.Run(feeds).status());
  return WithTimes(graph, TaskSeconds(graph, runner.tile_times()));
}

}  // namespace weft
