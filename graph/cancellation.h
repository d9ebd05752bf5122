// How a run is told to stop: by another thread, or by the clock.
//
//   Cancellation stop;  // shared with the thread that may call stop.Cancel()
//   runner.Run(feeds, {.cancellation = &stop, .deadline = absl::Now() + absl::Seconds(1)});
#ifndef WEFT_GRAPH_CANCELLATION_H_
#define WEFT_GRAPH_CANCELLATION_H_

#include <atomic>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace weft {

// A flag that one thread raises and runs look at. It must outlive the runs that were given it. After a Reset() runs go
// on as if it had never been raised, but those that have noticed it are stopped all the same.
class Cancellation {
 public:
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void Reset() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
};

// A run that is stopped before its first write of state has changed no parameter; once it has begun to write, it is
// finished. The Outputs of earlier runs are overwritten in either case.
struct RunOptions {
  const Cancellation* cancellation = nullptr;
  absl::Time deadline = absl::InfiniteFuture();
};

}  // namespace weft

#endif  // WEFT_GRAPH_CANCELLATION_H_
