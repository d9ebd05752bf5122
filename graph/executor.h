// An Executor runs each task of a schedule once, after all of its predecessors. graph/policies/policies.h makes
// executors.
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

  // Runs one task on one worker. Joins that were added as tasks are passed, too.
  using Body = absl::FunctionRef<void(uint32_t task, int worker)>;
  // Runs every task once. Workers are numbered 0 .. threads() - 1, and no number is in two calls of the body at once.
  // Calls of Run must not overlap.
  virtual void Run(Body body) = 0;

  virtual int threads() const = 0;
  // Returns how many workers took part in the last call of Run, including the caller.
  virtual int workers_entered() const = 0;
  // Returns how often workers stole from each other in the last call of Run: tasks, or slices of a task's successors.
  // Returns nullopt if the executor does not steal.
  virtual std::optional<uint64_t> steals() const { return std::nullopt; }
};

}  // namespace weft

#endif  // WEFT_GRAPH_EXECUTOR_H_
