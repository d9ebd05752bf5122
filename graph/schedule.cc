// Build removes duplicate edges, inserts joins before tasks with many predecessors, and writes the arrays.
#include "weft/graph/schedule.h"

#include <bit>
#include <numeric>
#include <utility>

#include "weft/base/status.h"

namespace weft {
namespace {

using Edge = std::array<uint32_t, 2>;  // (before, after)

// A task with more than 64 predecessors gets joins. Otherwise too many workers contend for its count of predecessors.
constexpr uint32_t kMaxPredecessors = 64;

// Holds the predecessors of each task: those of task t are tasks[first[t]] .. tasks[first[t] + count[t] - 1].
struct Predecessors {
  std::vector<uint32_t> first, count, tasks;

  absl::Span<const uint32_t> Of(uint32_t t) const { return absl::MakeSpan(tasks).subspan(first[t], count[t]); }
};

// Groups edges by the task that waits, and drops duplicates.
Predecessors GroupByTarget(const std::vector<Edge>& edges, uint32_t count) {
  Predecessors result = {.first = std::vector<uint32_t>(count + 1), .count = std::vector<uint32_t>(count)};
  for (const Edge& edge : edges) ++result.first[edge[1] + 1];
  std::partial_sum(result.first.begin(), result.first.end(), result.first.begin());
  result.first.pop_back();
  result.tasks.resize(edges.size());
  for (const auto& [before, after] : edges) result.tasks[result.first[after] + result.count[after]++] = before;
  std::vector<uint32_t> seen_by(count, count);
  for (uint32_t t = 0; t < count; ++t) {
    const auto begin = result.tasks.begin() + result.first[t];
    const auto seen = [&](uint32_t before) { return std::exchange(seen_by[before], t) == t; };
    result.count[t] = static_cast<uint32_t>(std::remove_if(begin, begin + result.count[t], seen) - begin);
  }
  return result;
}

// Returns for each task whether messages wait for it: a task of Schedule::ends_later follows it, or only such tasks do.
// `order`: that of SerialOrder.
std::vector<bool> PrecedesMessages(const Schedule& schedule, absl::Span<const uint32_t> order) {
  std::vector<bool> result(schedule.size(), false);
  if (schedule.ends_later.empty()) return result;
  for (size_t i = order.size(); i-- > 0;) {
    const uint32_t task = order[i];
    bool message = false, all = schedule.first_successor[task] < schedule.first_successor[task + 1];
    schedule.ForEachSuccessor(task, [&](uint32_t next) {
      message = message || schedule.EndsLater(next);
      all = all && result[next];
    });
    result[task] = message || all;
  }
  return result;
}

// Sorts the successors of each task in ascending order of the longest path that begins with a successor. Tasks that
// precede messages come last. The successors must not have kAlone; the function sets it.
void SortSuccessors(Schedule* schedule) {
  const std::vector<uint32_t> order = SerialOrder(*schedule);
  std::vector<float> length;
  LongestPaths(*schedule, order, schedule->seconds, &length);
  const std::vector<bool> precedes = PrecedesMessages(*schedule, order);
  // The upper half of a key is the task's rank. Its highest bit tells whether the task precedes messages. The other
  // bits are those of its length: lengths are not negative, so their bits have the order of the numbers. The lower half
  // is ~t, so of equal tasks the one with the highest number comes first.
  std::vector<uint64_t> keys(schedule->size());
  for (uint32_t t = 0; t < keys.size(); ++t) {
    const uint32_t rank = std::bit_cast<uint32_t>(length[t]) | (precedes[t] ? 0x80000000 : 0);
    keys[t] = uint64_t{rank} << 32 | ~t;
  }
  std::sort(keys.begin(), keys.end());
  // Collect the predecessors of each task. Then take the tasks in the sorted order and append each to the slices of its
  // predecessors, which leaves every slice sorted.
  const std::vector<uint32_t>& first = schedule->first_successor;
  std::vector<uint32_t> next(schedule->size()), before(schedule->successors.size());
  std::exclusive_scan(schedule->waits_for.begin(), schedule->waits_for.end(), next.begin(), 0u);
  for (uint32_t t = 0; t + 1 < first.size(); ++t) {
    for (uint32_t i = first[t]; i < first[t + 1]; ++i) before[next[schedule->successors[i]]++] = t;
  }
  std::vector<uint32_t> at(first.begin(), first.end() - 1);
  for (const uint64_t key : keys) {
    const uint32_t t = ~static_cast<uint32_t>(key);
    const uint32_t count = schedule->waits_for[t], alone = count == 1 ? Schedule::kAlone : 0;
    for (uint32_t i = next[t] - count; i < next[t]; ++i) schedule->successors[at[before[i]]++] = t | alone;
  }
}

}  // namespace

std::vector<uint32_t> SerialOrder(const Schedule& schedule) {
  std::vector<uint32_t> left = schedule.waits_for, order;
  order.reserve(left.size());
  const auto release = [&](uint32_t task) {
    schedule.ForEachSuccessor(task, [&](uint32_t next) {
      if (--left[next] == 0) order.push_back(next);
    });
  };
  release(schedule.start());
  for (size_t i = 0; i < order.size(); ++i) release(order[i]);
  return order;
}

void LongestPaths(const Schedule& schedule, absl::Span<const uint32_t> order, absl::Span<const float> seconds,
                  std::vector<float>* length) {
  WEFT_CHECK(order.size() == schedule.size() && seconds.size() == schedule.task_count);
  length->assign(schedule.size(), 0);
  for (size_t i = order.size(); i-- > 0;) {
    float& longest = (*length)[order[i]];
    schedule.ForEachSuccessor(order[i], [&](uint32_t next) { longest = std::max(longest, (*length)[next]); });
    if (order[i] < schedule.task_count) longest += seconds[order[i]];
  }
}

CriticalPath FindCriticalPath(const Schedule& schedule, absl::Span<const double> seconds, int workers) {
  WEFT_CHECK(seconds.size() == schedule.task_count);
  constexpr uint32_t kNone = 0xffffffff;
  std::vector<double> begin(schedule.size(), 0);         // by task: the earliest start
  std::vector<uint32_t> before(schedule.size(), kNone);  // by task: the predecessor that ends last
  CriticalPath path;
  uint32_t last = kNone;
  for (uint32_t task : SerialOrder(schedule)) {
    const bool join = task >= schedule.task_count;
    const double done = begin[task] + (join ? 0 : seconds[task] / schedule.SharersOf(task, workers));
    if (done > path.seconds) {
      path.seconds = done;
      last = task;
    }
    schedule.ForEachSuccessor(task, [&](uint32_t next) {
      if (done <= begin[next]) return;
      begin[next] = done;
      before[next] = task;
    });
  }
  for (; last != kNone; last = before[last]) {
    if (last < schedule.task_count) path.tasks.push_back(last);
  }
  std::reverse(path.tasks.begin(), path.tasks.end());
  return path;
}

Schedule WithSeconds(Schedule schedule, absl::Span<const double> seconds) {
  schedule.seconds.assign(seconds.begin(), seconds.end());
  for (uint32_t& task : schedule.successors) task &= ~Schedule::kAlone;
  SortSuccessors(&schedule);
  return schedule;
}

uint32_t ScheduleBuilder::AddTask(double seconds, bool ends_later, uint16_t parts) {
  WEFT_CHECK(seconds >= 0 && parts > 0 && !(ends_later && parts > 1));
  schedule_.seconds.push_back(static_cast<float>(seconds));
  if (parts > 1) {
    schedule_.parts.resize(schedule_.seconds.size(), 1);
    schedule_.parts.back() = parts;
  }
  if (ends_later) {
    schedule_.ends_later.resize(schedule_.seconds.size());
    schedule_.ends_later.back() = true;
  }
  return schedule_.task_count++;
}

void ScheduleBuilder::AddEdge(uint32_t before, uint32_t after) {
  WEFT_CHECK(before < after && after < schedule_.task_count);
  edges_.push_back({before, after});
}

Schedule ScheduleBuilder::Build() && {
  const uint32_t count = schedule_.task_count;
  Predecessors before = GroupByTarget(std::exchange(edges_, {}), count);
  const auto add_join = [&](size_t first, size_t waits) {
    before.first.push_back(static_cast<uint32_t>(first));
    before.count.push_back(static_cast<uint32_t>(waits));
    return static_cast<uint32_t>(before.first.size() - 1);
  };

  // Find the tasks for which no other task waits. The end waits for them.
  std::vector<bool> is_last(count, true);
  for (uint32_t t = 0; t < count; ++t) {
    for (uint32_t task : before.Of(t)) is_last[task] = false;
  }
  const size_t first_of_end = before.tasks.size();
  for (uint32_t t = 0; t < count; ++t) {
    if (is_last[t]) before.tasks.push_back(t);
  }
  const uint32_t end = add_join(first_of_end, before.tasks.size() - first_of_end);

  // Rewrite (many predecessors -> task) to (many predecessors -> joins -> task).
  for (uint32_t t = 0; t <= end; ++t) {
    while (before.count[t] > kMaxPredecessors) {
      const size_t first_join = before.tasks.size();
      for (uint32_t i = 0; i < before.count[t]; i += kMaxPredecessors) {
        before.tasks.push_back(add_join(before.first[t] + i, std::min(kMaxPredecessors, before.count[t] - i)));
      }
      before.first[t] = static_cast<uint32_t>(first_join);
      before.count[t] = static_cast<uint32_t>(before.tasks.size() - first_join);
    }
  }

  const uint32_t start = static_cast<uint32_t>(before.first.size());
  WEFT_CHECK(start < Schedule::kAlone && before.tasks.size() + start < Schedule::kAlone);
  // The start is the predecessor of tasks that have none.
  const auto predecessors = [&](uint32_t t) {
    return before.count[t] > 0 ? before.Of(t) : absl::Span<const uint32_t>(&start, 1);
  };
  Schedule schedule = std::move(schedule_);
  schedule.end = end;
  schedule.first_successor.resize(start + 2);
  for (uint32_t t = 0; t < start; ++t) {
    for (uint32_t task : predecessors(t)) ++schedule.first_successor[task + 1];
  }
  std::vector<uint32_t>& first = schedule.first_successor;
  std::partial_sum(first.begin(), first.end(), first.begin());
  schedule.successors.resize(first.back());
  std::vector<uint32_t> next(first.begin(), first.end() - 1);
  for (uint32_t t = 0; t < start; ++t) {
    for (uint32_t task : predecessors(t)) schedule.successors[next[task]++] = t;
  }
  schedule.waits_for = std::move(before.count);
  for (uint32_t& waits : schedule.waits_for) waits = std::max(waits, 1u);
  if (!schedule.ends_later.empty()) schedule.ends_later.resize(count);
  SortSuccessors(&schedule);
  return schedule;
}

}  // namespace weft
