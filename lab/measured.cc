// Adds up the times of tiles by task and by kernel call. Follows the operands in the order of the program, to estimate
// which bytes come from memory.
#include "weft/lab/measured.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "weft/base/status.h"
#include "weft/graph/compile/stages.h"
#include "weft/lab/machine/measure.h"

namespace weft {

void RunTimes::Add(absl::Span<const TileTime> tiles) {
  ++runs_;
  tiles_.resize(tiles.size());
  for (size_t t = 0; t < tiles.size(); ++t) tiles_[t].push_back(tiles[t].end - tiles[t].begin);
}

std::vector<TileTime> RunTimes::tiles() const {
  std::vector<TileTime> medians;
  for (const std::vector<int64_t>& times : tiles_) {
    medians.push_back({.end = std::llround(Median({times.begin(), times.end()}))});
  }
  return medians;
}

absl::StatusOr<RunTimes> MeasureOnOneWorker(const Graph& graph, absl::Span<const FeedPair> feeds,
                                            Parameters* parameters, int64_t runs) {
  WEFT_CHECK(runs >= 1);
  Runner runner(graph, parameters, {.threads = 1, .timed = true});
  WEFT_RETURN_IF_ERROR(runner.Run(feeds).status());
  RunTimes times;
  while (times.runs() < runs) {
    WEFT_RETURN_IF_ERROR(runner.Run(feeds).status());
    times.Add(runner.tile_times());
  }
  return times;
}

std::vector<double> TaskSeconds(const Graph& graph, absl::Span<const TileTime> tiles) {
  const CompiledGraph& compiled = graph.compiled();
  WEFT_CHECK(tiles.size() == compiled.tiles.size());  // of an execution with RunnerOptions::timed
  std::vector<double> seconds(compiled.tasks.size(), 0);
  for (size_t t = 0; t < seconds.size(); ++t) {
    const Task& task = compiled.tasks[t];
    if (task.group == Task::kJoin) continue;
    const Group& group = compiled.groups[task.group];
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) {
      const TileTime& tile = tiles[compiled.calls[s].first_tile + task.tile];
      seconds[t] += static_cast<double>(tile.end - tile.begin) * 1e-9;
    }
  }
  return seconds;
}

std::vector<double> CallSeconds(const Graph& graph, absl::Span<const TileTime> tiles) {
  WEFT_CHECK(tiles.size() == graph.compiled().tiles.size());
  std::vector<double> seconds;
  for (const KernelCall& call : graph.compiled().calls) {
    int64_t sum = 0;
    for (const TileTime& tile : tiles.subspan(call.first_tile, call.tile_count)) sum += tile.end - tile.begin;
    seconds.push_back(static_cast<double>(sum) * 1e-9);
  }
  return seconds;
}

int64_t MessageBytes(const CompiledGraph& graph, const KernelCall& call) {
  const Node& node = graph.program.node(call.node);
  int64_t bytes = 0;
  for (const Message& message : call.messages) {
    const size_t operand = static_cast<size_t>(message.operand);
    const ValueId value = operand < node.inputs.size()
                              ? node.inputs[operand]
                              : node.output(static_cast<uint32_t>(operand - node.inputs.size()));
    bytes += (message.end - message.begin) * static_cast<int64_t>(SizeOf(graph.program.value(value).type.dtype));
  }
  return bytes;
}

std::vector<RankMessage> MessagesOf(const CompiledGraph& graph) {
  std::vector<RankMessage> messages;
  for (const KernelCall& call : graph.calls) {
    if (call.messages.empty()) continue;
    WEFT_CHECK(call.messages.size() == 1);
    messages.push_back({.task = graph.groups[call.group].first_task,
                        .sends = call.messages[0].sends,
                        .peer = call.messages[0].peer,
                        .tag = call.messages[0].tag,
                        .bytes = static_cast<double>(MessageBytes(graph, call))});
  }
  return messages;
}

std::vector<double> TileShares(const Graph& graph) {
  const CompiledGraph& compiled = graph.compiled();
  std::vector<double> shares(compiled.tiles.size(), 1);
  for (uint32_t s = 0; s < compiled.calls.size(); ++s) {
    double whole = 0;
    for (const Rect& tile : compiled.tiles_of(s)) whole += static_cast<double>(tile.rows() * tile.cols());
    for (uint32_t t = 0; whole > 0 && t < compiled.calls[s].tile_count; ++t) {
      const Rect& tile = compiled.tiles[compiled.calls[s].first_tile + t];
      shares[compiled.calls[s].first_tile + t] = static_cast<double>(tile.rows() * tile.cols()) / whole;
    }
  }
  return shares;
}

std::vector<CallBytes> BytesOfCalls(const Graph& graph, double cache) {
  const CompiledGraph& compiled = graph.compiled();
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  struct Touched {
    double until = 0;         // the bytes touched up to the last use
    uint32_t writer = kNone;  // the last group that wrote the value
    uint32_t reader = kNone;  // the last group that has read it since
  };
  absl::flat_hash_map<std::tuple<Address::Kind, uint32_t, size_t>, Touched> touched;  // by address
  std::vector<CallBytes> bytes;
  double now = 0;
  for (const KernelCall& call : compiled.calls) {
    CallBytes& of_call = bytes.emplace_back();
    const auto touch = [&](ValueId id, bool reads) {
      const Address& address = compiled.addresses[static_cast<size_t>(id)];
      const double size = static_cast<double>(compiled.program.value(id).type.bytes());
      const auto [it, first] = touched.try_emplace({address.kind, address.index, address.offset}, Touched{now});
      Touched& last = it->second;
      if (first || now - last.until > cache) {
        of_call.memory += size;
      } else if (reads && last.writer != kNone && last.writer != call.group && last.reader != call.group) {
        of_call.moved += size;
      }
      now += size;
      last.until = now;
      (reads ? last.reader : last.writer) = call.group;
      if (!reads) last.reader = kNone;
    };
    const Node& node = compiled.program.node(call.node);
    for (ValueId in : node.inputs) touch(in, /*reads=*/true);
    for (uint32_t i = 0; i < node.output_count; ++i) touch(node.output(i), /*reads=*/false);
  }
  return bytes;
}

std::vector<TaskCost> TaskCosts(const Graph& graph, absl::Span<const double> task_seconds, double cache) {
  const CompiledGraph& compiled = graph.compiled();
  const std::vector<CallBytes> bytes = BytesOfCalls(graph, cache);
  std::vector<TaskCost> costs;
  for (double seconds : task_seconds) costs.push_back({.seconds = seconds});
  for (const Group& group : compiled.groups) {
    for (uint32_t s = group.first_call; s < group.end_call(); ++s) {
      for (uint32_t t = 0; t < group.tile_count; ++t) {
        costs[group.first_task + t].bytes += bytes[s].memory / group.tile_count;
        costs[group.first_task + t].cached += bytes[s].moved / group.tile_count;
      }
    }
  }
  return costs;
}

Graph WithTimes(const Graph& graph, absl::Span<const double> task_seconds) {
  auto measured = std::make_shared<CompiledGraph>(graph.compiled());
  measured->schedule = WithSeconds(std::move(measured->schedule), task_seconds);
  return Graph(std::move(measured));
}

absl::StatusOr<Graph> WithMeasuredTimes(const Graph& graph, absl::Span<const FeedPair> feeds, Parameters* parameters) {
  WEFT_ASSIGN_OR_RETURN(const RunTimes times, MeasureOnOneWorker(graph, feeds, parameters, /*runs=*/1));
  return WithTimes(graph, TaskSeconds(graph, times.tiles()));
}

Graph WithoutReuse(const Graph& graph) {
  auto free = std::make_shared<CompiledGraph>(graph.compiled());
  const auto root = [&](ValueId id) { return static_cast<size_t>(free->storage_roots[static_cast<size_t>(id)]); };
  Reuses states;  // the edges that remain: readers of a state come before the writer of its next version
  std::vector<std::vector<uint32_t>> readers(free->program.values.size());
  for (uint32_t s = 0; s < free->calls.size(); ++s) {
    const Node& node = free->program.node(free->calls[s].node);
    for (uint32_t i = 0; i < node.op->writes; ++i) {
      states.reuses.push_back({s, static_cast<uint32_t>(states.users.size())});
      states.users.push_back(readers[root(node.inputs[i])]);
    }
    for (ValueId in : node.inputs) readers[root(in)].push_back(s);
  }
  free->tasks.clear();
  MakeTasks(free.get(), states);
  return Graph(std::move(free));
}

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
