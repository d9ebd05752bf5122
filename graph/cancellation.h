// Cancellation and RunOptions: how an execution of a graph is stopped, by another thread or at a deadline.
//
//   Cancellation stop;  // shared with the thread that may call stop.Cancel()
//   runner.Run(feeds, {.cancellation = &stop, .deadline = absl::Now() + absl::Seconds(1)});
#ifndef WEFT_GRAPH_CANCELLATION_H_
#define WEFT_GRAPH_CANCELLATION_H_

#include <atomic>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace weft {

// A flag that one thread sets and executions poll. It must outlive the executions that use it. After Reset(),
// executions continue as if it had never been set, except those that have already noticed it.
class Cancellation {
 public:
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void Reset() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
};

// An execution stops only before its first write of state, so a stopped one has changed no parameter. Once it has begun
// to write, it continues to its end. In both cases the Outputs of earlier executions are overwritten.
struct RunOptions {
  const Cancellation* cancellation = nullptr;
  absl::Time deadline = absl::InfiniteFuture();
};

}  // namespace weft

#endif  // WEFT_GRAPH_CANCELLATION_H_
