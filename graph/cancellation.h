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

class Cancellation {
 public:
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void Reset() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
};

// A run that is stopped before its first write of state changed nothing; once it has begun to write, it is finished.
struct RunOptions {
  const Cancellation* cancellation = nullptr;
  absl::Time deadline = absl::InfiniteFuture();
};

// Of one run: whether its tasks are still to be done. They ask from many threads.
class Gate {
 public:
  void Open(const RunOptions& options) {
    options_ = options;
    const bool closable = options.cancellation != nullptr || options.deadline != absl::InfiniteFuture();
    state_.store(closable ? kClosable : kMustFinish, std::memory_order_relaxed);
  }
  // Whether the next task may run; `writes`: it writes state.
  bool Passes(bool writes) {
    State state = state_.load(std::memory_order_acquire);
    if (state == kClosable) {
      const bool stop = StopIsWanted();
      if (!stop && !writes) return true;
      if (state_.compare_exchange_strong(state, stop ? kClosed : kMustFinish, std::memory_order_acq_rel)) return !stop;
    }
    return state == kMustFinish;
  }
  bool closed() const { return state_.load(std::memory_order_relaxed) == kClosed; }

 private:
  enum State : int { kClosable, kMustFinish, kClosed };

  bool StopIsWanted() const {
    return (options_.cancellation != nullptr && options_.cancellation->cancelled()) ||
           (options_.deadline != absl::InfiniteFuture() && absl::Now() >= options_.deadline);
  }

  RunOptions options_;
  std::atomic<State> state_{kMustFinish};
};

}  // namespace weft

#endif  // WEFT_GRAPH_CANCELLATION_H_
