// Executors run the tasks of a schedule, each once, after all that it waits for. graph/policies/policies.h makes them.
//
//   executor->Run([&](uint32_t task, int worker) { ... });
#ifndef WEFT_GRAPH_EXECUTOR_H_
#define WEFT_GRAPH_EXECUTOR_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"

namespace weft {

class Executor {
 public:
  Executor() = default;
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Called with joins too, if they were added by the schedule's owner.
  using Body = absl::FunctionRef<void(uint32_t task, int worker)>;
  // Runs every task once. Workers are numbered 0 .. threads() - 1, and no two run at once under one number. One Run at
  // a time.
  virtual void Run(Body body) = 0;

  virtual int threads() const = 0;
  virtual int workers_entered() const = 0;  // into the last run, with the caller
  // What workers took from each other in the last run: tasks, or slices of what a task made ready. None where nobody
  // steals.
  virtual std::optional<uint64_t> steals() const { return std::nullopt; }
};

}  // namespace weft

#endif  // WEFT_GRAPH_EXECUTOR_H_
