// The time of a task is divided among the calls of its group in proportion to their times.
#include "weft/graph/compile/speedup.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "absl/algorithm/container.h"
#include "weft/graph/schedule.h"

namespace weft {

GraphSpeedup SpeedupOf(const Graph& graph) {
  const CompiledGraph& compiled = graph.compiled();
  const Schedule& schedule = compiled.schedule;
  const std::vector<double> seconds(schedule.seconds.begin(), schedule.seconds.end());
  const CriticalPath path = FindCriticalPath(schedule, seconds);
  GraphSpeedup result = {.work = std::accumulate(seconds.begin(), seconds.end(), 0.0), .path = path.seconds};
  std::map<NodeId, double> on_path;
  for (const uint32_t task : path.tasks) {
    if (compiled.tasks[task].group == Task::kJoin) continue;
    const Group& group = compiled.groups[compiled.tasks[task].group];
    double sum = 0;  // of the group's calls
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) sum += compiled.calls[s].seconds;
    const double shared = seconds[task] / schedule.SharersOf(task, std::numeric_limits<int>::max());
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) {
      on_path[compiled.calls[s].node] += sum > 0 ? shared * compiled.calls[s].seconds / sum : 0;
    }
  }
  result.nodes.assign(on_path.begin(), on_path.end());
  absl::c_stable_sort(result.nodes, [](const auto& a, const auto& b) { return a.second > b.second; });
  return result;
}

int UsefulWorkers(const Graph& graph, int most) {
  constexpr double kWakeSeconds = 50e-6;  // about the time until sleeping helpers work
  const Schedule& schedule = graph.compiled().schedule;
  const std::vector<double> each(schedule.seconds.begin(), schedule.seconds.end());
  const double work = std::accumulate(each.begin(), each.end(), 0.0);
  std::vector<std::pair<int, double>> expected;  // numbers of workers, and seconds
  for (int workers = 1;; workers = std::min(2 * workers, most)) {
    const double path = FindCriticalPath(schedule, each, workers).seconds;
    expected.emplace_back(workers, path + (work - path) / workers + (workers > 1 ? kWakeSeconds : 0));
    if (workers >= most) break;
  }
  double best = expected[0].second;
  for (const auto& [workers, seconds] : expected) best = std::min(best, seconds);
  const auto enough = [&](const auto& one) { return one.second <= kMinSpeedup * best; };
  return absl::c_find_if(expected, enough)->first;
}

}  // namespace weft
