// SimulatedWorkers are the workers of one rank in simulated time: they run the tasks of a schedule under a policy. The
// caller advances time and ends messages, so that simulations of one rank and of many ranks share this class.
//
//   SimulatedWorkers workers(&schedule, costs, kCriticalPath, {.workers = 2});
//   while (!workers.done()) {
//     workers.Begin();
//     ...  // starts workers.TakeMessages(), and ends others with workers.EndMessage(task)
//     workers.Advance(workers.UntilNextEnd());
//   }
#ifndef WEFT_LAB_SIMULATED_WORKERS_H_
#define WEFT_LAB_SIMULATED_WORKERS_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "weft/graph/policies/policies.h"
#include "weft/graph/queue_executor.h"
#include "weft/graph/schedule.h"

namespace weft {

struct TaskCost {
  double seconds = 0;  // duration if no other task used the memory
  double bytes = 0;    // bytes read from memory or written to it
};

struct SimulatedMachine {
  int workers = 1;
  double task_seconds = 0.1e-6;  // overhead of starting a task
  // Maximum bytes per second of one worker, and of all workers together. If the running tasks need more, each of them
  // waits longer for memory.
  double worker_bandwidth = std::numeric_limits<double>::infinity();
  double bandwidth = std::numeric_limits<double>::infinity();
};

class SimulatedWorkers {
 public:
  // `costs`: one for each task. `policy` must have a queue. `schedule`, `costs` and `machine` must outlive this object.
  SimulatedWorkers(const Schedule* schedule, absl::Span<const TaskCost> costs, const Policy& policy,
                   const SimulatedMachine& machine);
  ~SimulatedWorkers();

  bool done() const { return done_; }        // whether all tasks have ended
  bool running() const { return running_; }  // whether any worker runs a task
  double busy() const { return busy_; }      // sum of the times that workers spent on tasks, in seconds
  void Begin();                              // gives ready tasks to idle workers
  double UntilNextEnd() const;               // seconds until the first running task ends; infinity: no task runs
  void Advance(double seconds);              // advances time; `seconds`: at most UntilNextEnd()
  void EndMessage(uint32_t task);            // `task`: one of Schedule::ends_later
  std::vector<uint32_t> TakeMessages();  // returns tasks of Schedule::ends_later that became ready since the last call

 private:
  class Queue;
  struct Running;
  static constexpr size_t kIdle = std::numeric_limits<size_t>::max();

  double Waiting() const;
  size_t Share();

  const Schedule& schedule_;
  const absl::Span<const TaskCost> costs_;
  const SimulatedMachine& machine_;
  std::unique_ptr<Queue> queue_;
  ReadyCounts counts_;
  std::vector<Running> began_;  // by worker: the task that it began
  std::vector<size_t> runs_;    // by worker: the worker that began the task that it runs, or kIdle
  bool shares_ = false;         // whether idle workers share tasks
  double longer_ = 1;           // the factor of Waiting, for the tasks that run
  double busy_ = 0;
  bool done_ = false, running_ = false;
};

}  // namespace weft

#endif  // WEFT_LAB_SIMULATED_WORKERS_H_
