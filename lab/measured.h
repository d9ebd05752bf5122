// These functions measure the times of tiles and tasks. Priorities and simulations use the measured times. A Timeline
// lists when each task of one execution was ready, ran and ended.
//
//   absl::StatusOr<Graph> measured = WithMeasuredTimes(*graph, feeds, &parameters);
//   Runner runner(*measured, &parameters, {.policy = &kCriticalPathMeasured});
#ifndef WEFT_LAB_MEASURED_H_
#define WEFT_LAB_MEASURED_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"
#include "weft/lab/simulate.h"

namespace weft {

// Collects the times of the tiles in several executions of one graph, and returns their medians.
class RunTimes {
 public:
  void Add(absl::Span<const TileTime> tiles);

  int64_t runs() const { return runs_; }
  std::vector<TileTime> tiles() const;  // the median duration of each tile, given as a time that begins at 0

 private:
  int64_t runs_ = 0;
  std::vector<std::vector<int64_t>> tiles_;  // nanoseconds
};
// Measures `runs` executions, at least 1, on one worker. A first execution, which is not measured, touches the memory.
absl::StatusOr<RunTimes> MeasureOnOneWorker(const Graph& graph, absl::Span<const FeedPair> feeds,
                                            Parameters* parameters, int64_t runs);

// Return sums of the times of tiles: TaskSeconds for each task (0 for joins), CallSeconds for each kernel call.
// `tiles`: the time of each tile of the graph.
std::vector<double> TaskSeconds(const Graph& graph, absl::Span<const TileTime> tiles);
std::vector<double> CallSeconds(const Graph& graph, absl::Span<const TileTime> tiles);
// Returns the bytes of all messages of a call.
int64_t MessageBytes(const CompiledGraph& graph, const KernelCall& call);
// Returns the messages of a graph, for SimulateRanks.
std::vector<RankMessage> MessagesOf(const CompiledGraph& graph);
// Returns for each tile its number of elements, divided by that of all tiles of the same kernel call.
std::vector<double> TileShares(const Graph& graph);
inline constexpr double kCacheBytes = 32e6;  // 32 MB: a typical last-level cache, used by this process alone
// Estimates of a kernel call. An operand is in the cache if at most `cache` other bytes were touched since its last
// use, in the order of the program.
struct CallBytes {
  double memory = 0;  // bytes of inputs and outputs that are not in the cache
  double moved = 0;   // bytes of inputs in the cache that another group wrote, once for each group that reads them
};
std::vector<CallBytes> BytesOfCalls(const Graph& graph, double cache);
// Returns the cost of each task: its entry of `task_seconds`, and equal shares of the bytes of its group's calls.
std::vector<TaskCost> TaskCosts(const Graph& graph, absl::Span<const double> task_seconds, double cache);

// Returns the graph with priorities computed from `task_seconds`. Tasks and edges stay the same.
Graph WithTimes(const Graph& graph, absl::Span<const double> task_seconds);
// Returns the graph with priorities computed from the times of an execution on one worker.
absl::StatusOr<Graph> WithMeasuredTimes(const Graph& graph, absl::Span<const FeedPair> feeds, Parameters* parameters);
// Returns the graph without the edges that only order users of shared bytes. Readers of a state still come before the
// writer of its next version. The result is for simulation only: in an execution, values would overwrite each other.
Graph WithoutReuse(const Graph& graph);

// Converts nanoseconds to microseconds.
inline double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

struct Period {
  int64_t begin = 0, end = 0;
};

// Durations of messages to and from other ranks.
struct Communication {
  double communication_seconds = 0;  // time in which at least one message was under way
  double hidden_seconds = 0;         // the communication_seconds in which at least one worker ran a kernel
};

// A Timeline tells when each task of a timed execution was ready, began and ended, and which tasks were on the critical
// path. All times are nanoseconds since the execution began.
//
//   Runner runner(graph, &parameters, {.timed = true});
//   ...
//   const Timeline timeline(graph, runner.tile_times());
class Timeline {
 public:
  // `graph` and `tiles` must outlive the timeline.
  Timeline(const Graph& graph, absl::Span<const TileTime> tiles);

  int workers() const { return workers_; }  // does not count the lanes of messages
  int64_t end() const { return end_; }
  // Returns when a task ran: from the start of its tile of the group's first kernel call to the end of its tile of the
  // last. A join takes no time.
  const Period& period(uint32_t task) const { return periods_[task]; }
  int64_t ready(uint32_t task) const { return ready_[task]; }  // when the last task for which it waits ended
  // Returns the tasks of the longest path by the times of this execution, in the order of the path, without joins.
  const std::vector<uint32_t>& critical_path() const { return critical_path_; }

  // A message is under way from its start, which may be before the other rank is ready, to its end.
  Communication communication() const;

  // Levels over time: an entry's value is the level from its key, a time, until the next key. ReadyTasks counts tasks
  // that are ready but not begun. LiveBytes counts the bytes of the arena that hold a live value. Its life begins
  // with the first tile that writes the value, and ends with the last tile that reads the value or a view of it.
  std::map<int64_t, int64_t> ReadyTasks() const;
  std::map<int64_t, int64_t> LiveBytes() const;

 private:
  Period PeriodOf(uint32_t task) const;

  const CompiledGraph& graph_;
  const absl::Span<const TileTime> tiles_;
  int workers_ = 1;
  int64_t end_ = 0;
  std::vector<Period> periods_;
  std::vector<int64_t> ready_;
  std::vector<uint32_t> critical_path_;
};

}  // namespace weft

#endif  // WEFT_LAB_MEASURED_H_
