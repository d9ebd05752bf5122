// Derives all figures from the tiles' begin and end times, and from the graph's edges.
#include "weft/lab/timeline.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "weft/base/status.h"
#include "weft/lab/measured.h"
#include "weft/lab/simulate.h"

namespace weft {
namespace {

// Counts the bytes of the arena that are in use. If several values use a byte, for example an input and the output that
// replaces it, the byte counts once.
class Coverage {
 public:
  void Add(size_t offset, size_t size, int times) {
    const auto end = Split(offset + size);
    for (auto it = Split(offset); it != end; ++it) {
      const int before = it->second;
      it->second += times;
      if ((before == 0) == (it->second == 0)) continue;
      bytes_ += (before == 0 ? 1 : -1) * static_cast<int64_t>(std::next(it)->first - it->first);
    }
  }
  int64_t bytes() const { return bytes_; }

 private:
  using Users = std::map<size_t, int>;  // by offset: the number of users of the bytes up to the next offset

  Users::iterator Split(size_t offset) {
    const auto next = users_.upper_bound(offset);
    const int users = next == users_.begin() ? 0 : std::prev(next)->second;
    return users_.try_emplace(next, offset, users);
  }

  Users users_;
  int64_t bytes_ = 0;
};

// Returns the running sums of `changes`, with an entry at each time when the sum changes.
std::map<int64_t, int64_t> Levels(const std::map<int64_t, int64_t>& changes) {
  std::map<int64_t, int64_t> levels;
  int64_t level = 0;
  for (const auto& [time, change] : changes) {
    if (change != 0) levels[time] = level += change;
  }
  return levels;
}

}  // namespace

Timeline::Timeline(const Graph& graph, absl::Span<const TileTime> tiles)
    : graph_(graph.compiled()), tiles_(tiles), periods_(graph_.schedule.size()), ready_(graph_.schedule.size(), 0) {
  WEFT_CHECK(tiles.size() == graph_.tiles.size());  // the execution must have had RunnerOptions::timed
  for (const TileTime& tile : tiles) {
    workers_ = std::max(workers_, tile.worker + 1);
    end_ = std::max(end_, tile.end);
  }
  const std::vector<double> seconds = TaskSeconds(graph, tiles);
  for (uint32_t task : FindCriticalPath(graph_.schedule, seconds, /*workers=*/1).tasks) {  // timed tasks run whole
    if (graph_.tasks[task].group != Task::kJoin) critical_path_.push_back(task);
  }
  for (uint32_t task : SerialOrder(graph_.schedule)) {
    periods_[task] = PeriodOf(task);
    graph_.schedule.ForEachSuccessor(task,
                                     [&](uint32_t next) { ready_[next] = std::max(ready_[next], periods_[task].end); });
  }
}

Period Timeline::PeriodOf(uint32_t task) const {
  if (task >= graph_.tasks.size() || graph_.tasks[task].group == Task::kJoin) return {ready_[task], ready_[task]};
  const auto [group_number, tile] = graph_.tasks[task];
  const Group& group = graph_.groups[group_number];
  return {tiles_[graph_.calls[group.first_call].first_tile + tile].begin,
          tiles_[graph_.calls[group.end_call() - 1].first_tile + tile].end};
}

Communication Timeline::communication() const {
  struct Change {
    int messages = 0, kernels = 0;
  };
  std::map<int64_t, Change> changes;
  for (const TileTime& tile : tiles_) {
    if (tile.end <= tile.begin) continue;
    int Change::*const kind = tile.worker < 0 ? &Change::messages : &Change::kernels;
    ++(changes[tile.begin].*kind);
    --(changes[tile.end].*kind);
  }
  int64_t total = 0, hidden = 0, before = 0;
  Change now;
  for (const auto& [time, change] : changes) {
    if (now.messages > 0) total += time - before;
    if (now.messages > 0 && now.kernels > 0) hidden += time - before;
    now.messages += change.messages;
    now.kernels += change.kernels;
    before = time;
  }
  return {static_cast<double>(total) * 1e-9, static_cast<double>(hidden) * 1e-9};
}

std::map<int64_t, int64_t> Timeline::ReadyTasks() const {
  std::map<int64_t, int64_t> changes;
  for (uint32_t t = 0; t < graph_.tasks.size(); ++t) {
    if (graph_.tasks[t].group == Task::kJoin) continue;
    ++changes[std::min(ready_[t], periods_[t].begin)];
    --changes[periods_[t].begin];
  }
  return Levels(changes);
}

std::map<int64_t, int64_t> Timeline::LiveBytes() const {
  std::vector<Period> live(graph_.program.values.size(), {-1, -1});  // by storage root
  for (const KernelCall& call : graph_.calls) {
    Period period = {std::numeric_limits<int64_t>::max(), 0};
    for (const TileTime& tile : tiles_.subspan(call.first_tile, call.tile_count)) {
      period = {std::min(period.begin, tile.begin), std::max(period.end, tile.end)};
    }
    const Node& node = graph_.program.node(call.node);
    for (uint32_t i = 0; i < node.output_count; ++i) live[node.output(i)] = period;
    for (ValueId in : node.inputs) {
      Period& read = live[graph_.storage_roots[in]];
      read.end = std::max(read.end, period.end);
    }
  }
  std::multimap<int64_t, std::pair<size_t, int>> changes;  // by time: a value; 1: its life begins, -1: its life ends
  for (size_t v = 0; v < live.size(); ++v) {
    if (live[v].begin < 0 || graph_.addresses[v].kind != Address::Kind::kArena) continue;
    changes.insert({live[v].begin, {v, 1}});
    changes.insert({live[v].end, {v, -1}});
  }
  Coverage coverage;
  std::map<int64_t, int64_t> levels;
  for (const auto& [time, change] : changes) {
    const auto [v, times] = change;
    coverage.Add(graph_.addresses[v].offset, graph_.program.values[v].type.bytes(), times);
    levels[time] = coverage.bytes();
  }
  return levels;
}

}  // namespace weft
