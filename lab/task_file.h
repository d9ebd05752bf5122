// Tasks as a file, to be simulated again later or elsewhere; anybody's, not only those of a compiled graph.
//
//   {"weft_tasks": 1,
//    "tasks": [{"name": "load", "seconds": 1e-3, "bytes": 4e6}, {"name": "add", "seconds": 2e-4}],
//    "edges": [[0, 1]]}
//
// An edge leads from a task to one that waits for it and stands after it in the list. "bytes" are those that the task
// reads from memory or writes to it; they and the name may be left out.
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
  std::vector<std::pair<uint32_t, uint32_t>> edges;  // (before, after), before < after

  Schedule schedule() const;
};

// InvalidArgument that says where, if the text is no such file; `from` is named in it.
absl::StatusOr<TaskList> ParseTasks(const std::string& text, const std::string& from);
std::string PrintTasks(const TaskList& tasks);
// With joins as tasks of 0 seconds. Names and costs are by task of the schedule.
TaskList ListTasks(const Schedule& schedule, absl::Span<const std::string> names, absl::Span<const TaskCost> costs);

}  // namespace weft

#endif  // WEFT_LAB_TASK_FILE_H_
