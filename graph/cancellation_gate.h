// Whether the tasks of a run are still to be done, as its RunOptions say. They ask from many threads.
#ifndef WEFT_GRAPH_CANCELLATION_GATE_H_
#define WEFT_GRAPH_CANCELLATION_GATE_H_

#include <atomic>

#include "absl/status/status.h"
#include "weft/graph/cancellation.h"

namespace weft {

class CancellationGate {
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
      const State next = Next(writes);
      if (next == kClosable || state_.compare_exchange_strong(state, next, std::memory_order_acq_rel)) state = next;
    }
    return state == kClosable || state == kMustFinish;
  }
  // After the run: why it was stopped, or OK.
  absl::Status status() const {
    switch (state_.load(std::memory_order_relaxed)) {
      case kCancelled:
        return absl::CancelledError("run: cancelled; no parameter was changed");
      case kLate:
        return absl::DeadlineExceededError("run: the deadline has passed; no parameter was changed");
      case kClosable:
      case kMustFinish:
        break;
    }
    return absl::OkStatus();
  }

 private:
  enum State : int { kClosable, kMustFinish, kCancelled, kLate };

  State Next(bool writes) const {
    if (options_.cancellation != nullptr && options_.cancellation->cancelled()) return kCancelled;
    if (options_.deadline != absl::InfiniteFuture() && absl::Now() >= options_.deadline) return kLate;
    return writes ? kMustFinish : kClosable;
  }

  RunOptions options_;
  std::atomic<State> state_{kMustFinish};
};

}  // namespace weft

#endif  // WEFT_GRAPH_CANCELLATION_GATE_H_
