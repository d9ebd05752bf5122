// A Timeline tells when each task of a timed execution was ready, began and ended, and which tasks were on the critical
// path.
//
//   Runner runner(graph, &parameters, {.timed = true});
//   ...
//   const Timeline timeline(graph, runner.tile_times());
//
// All times are nanoseconds since the execution began.
#ifndef WEFT_LAB_TIMELINE_H_
#define WEFT_LAB_TIMELINE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/run/runner.h"

namespace weft {

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

#endif  // WEFT_LAB_TIMELINE_H_
