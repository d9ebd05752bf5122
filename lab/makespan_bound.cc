// Finds for each task the longest paths before and after it, and then the set of tasks that needs most time.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "weft/base/status.h"
#include "weft/lab/simulate.h"

namespace weft {
namespace {

// Number of classes of times before tasks, and of times after them. For each pair of classes, MakespanBound examines
// the tasks in these and all later classes.
constexpr size_t kClasses = 256;

// For each task: the seconds of the longest path that ends just before it, and that begins just after it.
struct Paths {
  std::vector<double> before, after;
};

Paths FindPaths(const Schedule& schedule, const std::vector<double>& seconds) {
  Paths paths = {std::vector<double>(schedule.size(), 0), std::vector<double>(schedule.size(), 0)};
  const std::vector<uint32_t> order = SerialOrder(schedule);
  for (const uint32_t task : order) {
    const double done = paths.before[task] + seconds[task];
    schedule.ForEachSuccessor(task, [&](uint32_t next) { paths.before[next] = std::max(paths.before[next], done); });
  }
  for (size_t i = order.size(); i-- > 0;) {
    double& after = paths.after[order[i]];
    schedule.ForEachSuccessor(order[i],
                              [&](uint32_t next) { after = std::max(after, paths.after[next] + seconds[next]); });
  }
  return paths;
}

// Returns the number of the class of `time`: classes have equal lengths, and the last one ends at `longest`.
size_t ClassOf(double time, double longest) {
  return longest > 0 ? std::min(static_cast<size_t>(time / longest * kClasses), kClasses - 1) : 0;
}

}  // namespace

double MakespanBound(const Schedule& schedule, absl::Span<const TaskCost> costs, const SimulatedMachine& machine) {
  WEFT_CHECK(costs.size() == schedule.task_count && machine.workers >= 1);
  std::vector<double> seconds(schedule.size(), 0), shortest = seconds;  // of one worker, and of all; joins take no time
  double longest = 0, bytes = 0;
  for (uint32_t t = 0; t < schedule.task_count; ++t) {
    const bool message = schedule.EndsLater(t);
    seconds[t] = costs[t].seconds + (message ? 0 : machine.task_seconds);
    shortest[t] = seconds[t] / schedule.SharersOf(t, machine.workers);
    if (!message && machine.worker_bandwidth < std::numeric_limits<double>::infinity()) {
      bytes += std::min(costs[t].bytes, machine.worker_bandwidth * seconds[t]);
    }
  }
  const Paths paths = FindPaths(schedule, shortest);
  for (uint32_t t = 0; t < schedule.task_count; ++t) {
    longest = std::max(longest, paths.before[t] + shortest[t] + paths.after[t]);
  }
  // A cell first describes the tasks of one class of times before (h) and of times after (q): their work, and the
  // minimum time before and after them. The last loop extends each cell to all later classes.
  struct Cell {
    double work = 0, before, after;
  };
  std::vector<Cell> cells((kClasses + 1) * (kClasses + 1), {.before = longest, .after = longest});
  const auto at = [&](size_t h, size_t q) -> Cell& { return cells[h * (kClasses + 1) + q]; };
  for (uint32_t t = 0; t < schedule.task_count; ++t) {
    if (schedule.EndsLater(t)) continue;
    Cell& cell = at(ClassOf(paths.before[t], longest), ClassOf(paths.after[t], longest));
    cell.work += seconds[t];
    cell.before = std::min(cell.before, paths.before[t]);
    cell.after = std::min(cell.after, paths.after[t]);
  }
  double bound = std::max(longest, bytes / machine.bandwidth);
  for (size_t h = kClasses; h-- > 0;) {
    for (size_t q = kClasses; q-- > 0;) {
      Cell& cell = at(h, q);
      const Cell &later = at(h + 1, q), &earlier = at(h, q + 1);
      cell.work += later.work + earlier.work - at(h + 1, q + 1).work;
      cell.before = std::min({cell.before, later.before, earlier.before});
      cell.after = std::min({cell.after, later.after, earlier.after});
      if (cell.work > 0) bound = std::max(bound, cell.before + cell.work / machine.workers + cell.after);
    }
  }
  return bound;
}

}  // namespace weft
