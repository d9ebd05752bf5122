// These functions read and write lists of tasks as JSON, so that the tasks can be simulated again or elsewhere. The
// tasks need not come from a compiled graph.
//
//   {"weft_tasks": 1,
//    "tasks": [{"name": "load", "seconds": 1e-3, "bytes": 4e6}, {"name": "add", "seconds": 2e-4}],
//    "edges": [[0, 1]]}
//
// An edge leads from a task to a task that waits for it and is later in the list. "bytes" counts the bytes that a task
// reads from memory and writes to it. "parts" is the number of parts of a task that several workers can share. "bytes",
// "parts" and "name" are optional.
#ifndef WEFT_LAB_TASK_FILE_H_
#define WEFT_LAB_TASK_FILE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/graph/schedule.h"
#include "weft/lab/simulate.h"

namespace weft {

struct TaskList {
  std::vector<std::string> names;  // by task
  std::vector<TaskCost> costs;
  std::vector<uint16_t> parts;                       // of each task; empty: one
  std::vector<std::pair<uint32_t, uint32_t>> edges;  // (before, after), before < after

  Schedule schedule() const;
};

// Parses the contents of a task file. If the text is malformed, returns InvalidArgument with the location in the file.
// `from`: the file name for errors.
absl::StatusOr<TaskList> ParseTasks(const std::string& text, const std::string& from);
std::string PrintTasks(const TaskList& tasks);
// Returns the tasks of `schedule` in a serial order, and its joins as tasks of 0 seconds. `names` and `costs` have one
// entry for each of the `task_count` tasks of the schedule.
TaskList ListTasks(const Schedule& schedule, absl::Span<const std::string> names, absl::Span<const TaskCost> costs);

}  // namespace weft

#endif  // WEFT_LAB_TASK_FILE_H_
