// What schedule_bench says of a graph under a policy.
#ifndef WEFT_BENCH_SCHEDULE_ROW_H_
#define WEFT_BENCH_SCHEDULE_ROW_H_

#include <cstdint>
#include <optional>
#include <string>

namespace weft {

// Of a run, in seconds unless the name says otherwise. What is not there was not measured, or can't be.
struct ScheduleRow {
  std::string graph, policy;
  uint32_t nodes = 0;
  int threads = 1;
  double work_us = 0;                              // of a node
  double makespan = 0;                             // from its beginning to its end
  double best = 0;                                 // the same, of the best turn
  double speedup = 0;                              // over policy serial
  double executed = 0;                             // nodes
  std::optional<double> busy, steals, first_node;  // as in bench/policy_runs.h
  std::optional<double> bound_work, bound_path;    // no policy takes less
  std::optional<double> build;                     // to make the schedule
};

enum class RowFormat { kTable, kJson, kCsv };

// A line, or "" if it has none.
std::string Header(RowFormat format);
std::string Print(const ScheduleRow& row, RowFormat format);

}  // namespace weft

#endif  // WEFT_BENCH_SCHEDULE_ROW_H_
