// When the tasks of a timed run could begin, began and ended, and what held it up.
//
//   Runner runner(graph, &parameters, {.timed = true});
//   ...
//   const Timeline timeline(graph, runner.tile_times());
//
// Times are nanoseconds since the run began.
#ifndef WEFT_LAB_TIMELINE_H_
#define WEFT_LAB_TIMELINE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "weft/graph/graph.h"
#include "weft/graph/runner.h"

namespace weft {

struct Period {
  int64_t begin = 0, end = 0;
};

class Timeline {
 public:
  // Both must outlive it.
  Timeline(const Graph& graph, absl::Span<const TileTime> tiles);

  int workers() const { return workers_; }
  int64_t end() const { return end_; }
  // By task: from its first tile's beginning to its last one's end; of a join, when the last that it waits for ended.
  const Period& period(uint32_t task) const { return periods_[task]; }
  int64_t ready(uint32_t task) const { return ready_[task]; }  // when the last that it waits for ended
  // The tasks of the longest path of this run's times, in their order, without joins.
  const std::vector<uint32_t>& critical_path() const { return critical_path_; }

  // What a figure is from a moment on, by moment: tasks that are ready and not begun, and bytes of the arena that hold
  // a live value, from the first tile of who makes it to the last of who reads it or a view of it.
  std::map<int64_t, int64_t> ReadyTasks() const;
  std::map<int64_t, int64_t> LiveBytes() const;

 private:
  Period PeriodOf(uint32_t task) const;
  Period CallPeriod(uint32_t call) const;

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
