// A ScheduleRow is a row of schedule_bench's output: the figures of a graph under a policy.
#ifndef WEFT_BENCH_SCHEDULE_SCHEDULE_ROW_H_
#define WEFT_BENCH_SCHEDULE_SCHEDULE_ROW_H_

#include <cstdint>
#include <optional>
#include <string>

namespace weft {

// Times are of one execution, in seconds unless the name says otherwise. Absent figures were not measured.
struct ScheduleRow {
  std::string graph, policy;
  uint32_t nodes = 0;
  int threads = 1;
  double work_us = 0;                              // microseconds of a node
  double makespan = 0;                             // of the median turn
  double best = 0;                                 // of the best turn
  double speedup = 0;                              // relative to policy serial
  double executed = 0;                             // number of nodes that ran
  std::optional<double> busy, steals, first_node;  // see bench/schedule/policy_timer.h
  std::optional<double> bound_work, bound_path;    // lower bounds for any policy: work / threads, and critical path
  std::optional<double> build;                     // time to build the schedule
};

enum class RowFormat { kTable, kJson, kCsv };

// Returns the line of headings, or "" if the format has none.
std::string Header(RowFormat format);
std::string Print(const ScheduleRow& row, RowFormat format);

}  // namespace weft

#endif  // WEFT_BENCH_SCHEDULE_SCHEDULE_ROW_H_
