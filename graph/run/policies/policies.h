// A policy decides in which order the ready tasks of a schedule run. docs/tutorials/write_a_scheduler.md shows how to
// add one.
//
//   const Policy* policy = FindPolicy("critical-path");
//   std::unique_ptr<Executor> executor = MakeExecutor(*policy, &schedule, /*threads=*/4);
#ifndef WEFT_GRAPH_RUN_POLICIES_POLICIES_H_
#define WEFT_GRAPH_RUN_POLICIES_POLICIES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/graph/run/executor.h"
#include "weft/graph/schedule.h"

namespace weft {

struct Policy {
  const char* name;
  const char* summary;  // half a line, for lists of policies
  // Makes the queue of an executor or a simulation. `schedule` must outlive the queue. Null: the policy can't be
  // simulated, and must have `executor`.
  std::unique_ptr<ReadyQueue> (*queue)(const Schedule* schedule, int workers) = nullptr;
  // Makes the executor. Null: the executor is a QueueExecutor, whose workers share the queue.
  std::unique_ptr<Executor> (*executor)(const Schedule* schedule, int threads) = nullptr;
  bool shares = false;    // true: idle workers take parts of tasks that others run (Schedule::SharersOf)
  bool measured = false;  // true: needs a schedule with measured times (WithSeconds)
  bool learns = false;    // true: each execution after the first goes by the durations of the one before
};

extern const Policy kSerial, kFifo, kLifo, kLevel, kCriticalPath, kCriticalPathMeasured, kEarliestFinish,
    kEarliestFinishLearned;

absl::Span<const Policy* const> Policies();
std::vector<std::string> PolicyNames();
// Returns the policy called `name`, or null if there is none.
const Policy* FindPolicy(absl::string_view name);
std::unique_ptr<Executor> MakeExecutor(const Policy& policy, const Schedule* schedule, int threads);

}  // namespace weft

#endif  // WEFT_GRAPH_RUN_POLICIES_POLICIES_H_
