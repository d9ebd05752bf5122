// Cancellation and RunOptions let another thread, or a deadline, stop an execution of a graph.
//
//   Cancellation stop;  // shared with the thread that may call stop.Cancel()
//   const RunOptions options = {.cancellation = &stop, .deadline = absl::Now() + absl::Seconds(1)};
//   absl::StatusOr<Outputs> out = runner.Run(feeds, options);
#ifndef WEFT_GRAPH_RUN_CANCELLATION_H_
#define WEFT_GRAPH_RUN_CANCELLATION_H_

#include <atomic>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace weft {

// A Cancellation is a flag that one thread sets and executions poll. The flag must outlive the executions that use it.
// After Reset(), executions continue as if it had never been set, except those that have noticed it.
class Cancellation {
 public:
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void Reset() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
};

// RunOptions stop an execution only before its first write of state, so a stopped execution has changed no state. Once
// a write has begun, the execution continues to its end. Even a stopped execution may overwrite the Outputs of the
// runner's earlier executions.
struct RunOptions {
  const Cancellation* cancellation = nullptr;
  absl::Time deadline = absl::InfiniteFuture();
};

}  // namespace weft

#endif  // WEFT_GRAPH_RUN_CANCELLATION_H_
