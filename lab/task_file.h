// A Workload is what is simulated: tasks and their costs. These functions read and write its tasks as JSON, so that
// they can be simulated again or elsewhere. The tasks need not come from a compiled graph.
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
#include <vector>

#include "absl/status/statusor.h"
#include "weft/graph/schedule.h"
#include "weft/lab/simulate.h"

namespace weft {

// The tasks that are simulated.
struct Workload {
  Schedule schedule;           // with priorities from the cost model
  Schedule measured_schedule;  // with priorities from measured times
  std::vector<TaskCost> costs;
  std::vector<std::string> names;  // by task; empty strings for tasks without a name

  double seconds() const;        // of all tasks on one worker
  double critical_path() const;  // seconds
};

// Parses the contents of a task file. If the text is malformed, returns InvalidArgument with the location in the file.
// `from`: the file name for errors.
absl::StatusOr<Workload> ParseTasks(const std::string& text, const std::string& from);
// Returns the contents of a file with the tasks of `workload` in a serial order, and with the joins of its schedule as
// tasks of 0 seconds.
std::string PrintTasks(const Workload& workload);

}  // namespace weft

#endif  // WEFT_LAB_TASK_FILE_H_
