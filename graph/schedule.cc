// Build removes duplicate edges, finds the longest path from each task to the end, inserts joins before tasks with many
// predecessors, and writes the arrays.
#include "weft/graph/schedule.h"

#include <algorithm>
#include <map>

#include "weft/core/status.h"

namespace weft {
namespace {

using Edge = std::pair<uint32_t, uint32_t>;

// A task with more than 64 predecessors gets joins. Otherwise too many workers contend for its count of predecessors.
constexpr size_t kMaxPredecessors = 64;

// Slices holds edges by their source: task `t` has edges to `targets[i]` for each i in [first[t], first[t + 1]).
struct Slices {
  std::vector<uint32_t> first, targets;
};

Slices GroupBySource(const std::vector<Edge>& edges, uint32_t count) {
  Slices slices;
  slices.first.assign(count + 1, 0);
  for (const Edge& edge : edges) ++slices.first[edge.first + 1];
  for (uint32_t t = 0; t < count; ++t) slices.first[t + 1] += slices.first[t];
  slices.targets.resize(edges.size());
  std::vector<uint32_t> next(slices.first.begin(), slices.first.end() - 1);
  for (const auto& [before, after] : edges) slices.targets[next[before]++] = after;
  return slices;
}

}  // namespace

std::vector<uint32_t> SerialOrder(const Schedule& schedule) {
  std::vector<uint32_t> left = schedule.waits_for, order;
  order.reserve(left.size());
  const auto release = [&](uint32_t task) {
    for (uint32_t i = schedule.first_successor[task]; i < schedule.first_successor[task + 1]; ++i) {
      const uint32_t next = schedule.successors[i] & ~Schedule::kAlone;
      if (--left[next] == 0) order.push_back(next);
    }
  };
  release(schedule.start());
  for (size_t i = 0; i < order.size(); ++i) release(order[i]);
  return order;
}

namespace {

// Returns for each task whether messages wait for it: a task of Schedule::ends_later follows it, or only such tasks do.
// `schedule`: its successors must not have kAlone.
std::vector<bool> PrecedesMessages(const Schedule& schedule) {
  std::vector<bool> result(schedule.size(), false);
  if (schedule.ends_later.empty()) return result;
  const std::vector<uint32_t> order = SerialOrder(schedule);
  for (size_t i = order.size(); i-- > 0;) {
    const uint32_t task = order[i], end = schedule.first_successor[task + 1];
    bool message = false, all = schedule.first_successor[task] < end;
    for (uint32_t k = schedule.first_successor[task]; k < end; ++k) {
      message = message || schedule.EndsLater(schedule.successors[k]);
      all = all && result[schedule.successors[k]];
    }
    result[task] = message || all;
  }
  return result;
}

// Sorts the successors of each task in ascending order of `length`, the longest path that begins with a task. Tasks
// that precede messages come last. Then sets kAlone.
void SortSuccessors(const std::vector<float>& length, Schedule* schedule) {
  const std::vector<bool> precedes = PrecedesMessages(*schedule);
  const auto less = [&](uint32_t a, uint32_t b) {
    if (precedes[a] != precedes[b]) return static_cast<bool>(precedes[b]);
    return length[a] != length[b] ? length[a] < length[b] : a > b;
  };
  const std::vector<uint32_t>& first = schedule->first_successor;
  for (size_t t = 0; t + 1 < first.size(); ++t) {
    std::sort(schedule->successors.begin() + first[t], schedule->successors.begin() + first[t + 1], less);
  }
  for (uint32_t& task : schedule->successors) task |= schedule->waits_for[task] == 1 ? Schedule::kAlone : 0;
}

}  // namespace

void LongestPaths(const Schedule& schedule, absl::Span<const uint32_t> order, absl::Span<const float> seconds,
                  std::vector<float>* length) {
  WEFT_CHECK(order.size() == schedule.size() && seconds.size() == schedule.task_count);
  length->assign(schedule.size(), 0);
  for (size_t i = order.size(); i-- > 0;) {
    const uint32_t task = order[i];
    for (uint32_t k = schedule.first_successor[task]; k < schedule.first_successor[task + 1]; ++k) {
      (*length)[task] = std::max((*length)[task], (*length)[schedule.successors[k] & ~Schedule::kAlone]);
    }
    if (task < schedule.task_count) (*length)[task] += seconds[task];
  }
}

Schedule WithSeconds(Schedule schedule, absl::Span<const double> seconds) {
  schedule.seconds.assign(seconds.begin(), seconds.end());
  std::vector<float> length;
  LongestPaths(schedule, SerialOrder(schedule), schedule.seconds, &length);
  for (uint32_t& task : schedule.successors) task &= ~Schedule::kAlone;
  SortSuccessors(length, &schedule);
  return schedule;
}

uint32_t ScheduleBuilder::AddTask(double seconds, bool ends_later) {
  seconds_.push_back(static_cast<float>(seconds));
  if (ends_later) {
    ends_later_.resize(seconds_.size());
    ends_later_.back() = true;
  }
  return static_cast<uint32_t>(seconds_.size() - 1);
}

void ScheduleBuilder::AddEdge(uint32_t before, uint32_t after) {
  WEFT_CHECK(before < after && after < seconds_.size());
  edges_.push_back({before, after});
}

Schedule ScheduleBuilder::Build() && {
  const uint32_t count = static_cast<uint32_t>(seconds_.size());
  Slices slices = GroupBySource(edges_, count);
  edges_.clear();
  std::vector<float> length = seconds_;  // becomes the longest path from each task to the end, in seconds
  std::vector<uint32_t> waits(count + 1, 0);
  Schedule schedule = {.task_count = count, .end = count};
  for (uint32_t t = count; t-- > 0;) {
    const auto begin = slices.targets.begin() + slices.first[t], end = slices.targets.begin() + slices.first[t + 1];
    std::sort(begin, end);
    float longest = 0;
    uint32_t last = count;
    for (auto i = begin; i != end; ++i) {
      if (*i == last) continue;
      last = *i;
      longest = std::max(longest, length[last]);
      edges_.push_back({t, last});
      ++waits[last];
    }
    length[t] += longest;
    if (begin != end) continue;
    edges_.push_back({t, schedule.end});
    ++waits[schedule.end];
  }
  length.push_back(0);

  // Rewrite (many predecessors -> task) to (many predecessors -> joins -> task).
  std::map<uint32_t, std::vector<uint32_t>> wide;  // task → its predecessors
  std::erase_if(edges_, [&](const Edge& edge) {
    if (waits[edge.second] <= kMaxPredecessors) return false;
    wide[edge.second].push_back(edge.first);
    return true;
  });
  for (auto& [t, before] : wide) {
    while (before.size() > kMaxPredecessors) {
      std::vector<uint32_t> joins;
      for (size_t i = 0; i < before.size(); i += kMaxPredecessors) {
        const size_t n = std::min(kMaxPredecessors, before.size() - i);
        joins.push_back(static_cast<uint32_t>(waits.size()));
        waits.push_back(static_cast<uint32_t>(n));
        length.push_back(length[t]);
        for (size_t k = 0; k < n; ++k) edges_.push_back({before[i + k], joins.back()});
      }
      before = std::move(joins);
    }
    for (uint32_t join : before) edges_.push_back({join, t});
    waits[t] = static_cast<uint32_t>(before.size());
  }

  const uint32_t start = static_cast<uint32_t>(waits.size());
  WEFT_CHECK(start < Schedule::kAlone && edges_.size() + start < Schedule::kAlone);
  for (uint32_t t = 0; t < start; ++t) {
    if (waits[t] > 0) continue;
    edges_.push_back({start, t});
    waits[t] = 1;
  }
  slices = GroupBySource(edges_, start + 1);
  edges_ = {};
  schedule.waits_for = std::move(waits);
  schedule.first_successor = std::move(slices.first);
  schedule.successors = std::move(slices.targets);
  schedule.seconds = std::move(seconds_);
  schedule.ends_later = std::move(ends_later_);
  if (!schedule.ends_later.empty()) schedule.ends_later.resize(count);
  SortSuccessors(length, &schedule);
  return schedule;
}

}  // namespace weft
