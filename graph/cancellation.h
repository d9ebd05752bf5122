// Cancellation and RunOptions: how a run of a graph is stopped, by another thread or at a deadline.
//
//   Cancellation stop;  // shared with the thread that may call stop.Cancel()
//   runner.Run(feeds, {.cancellation = &stop, .deadline = absl::Now() + absl::Seconds(1)});
#ifndef WEFT_GRAPH_CANCELLATION_H_
#define WEFT_GRAPH_CANCELLATION_H_

#include <atomic>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace weft {

// A flag that one thread sets and runs poll. It must outlive the runs that use it. After Reset(), runs continue as if
// it had never been set, except those that have already noticed it.
class Cancellation {
 public:
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void Reset() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
};

// A run stops only before its first write of state, so a stopped run has changed no parameter. Once it has begun to
// write, it runs to its end. In both cases the Outputs of earlier runs are overwritten.
struct RunOptions {
  const Cancellation* cancellation = nullptr;
  absl::Time deadline = absl::InfiniteFuture();
};

}  // namespace weft

#endif  // WEFT_GRAPH_CANCELLATION_H_
