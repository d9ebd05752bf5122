// Cancellation and RunOptions let another thread, or a deadline, stop an execution of a graph.
//
//   Cancellation stop;  // shared with the thread that may call stop.Cancel()
//   const RunOptions options = {.cancellation = &stop, .deadline = absl::Now() + absl::Seconds(1)};
//   absl::StatusOr<Outputs> out = runner.Run(feeds, options);
#ifndef WEFT_GRAPH_RUN_CANCELLATION_H_
#define WEFT_GRAPH_RUN_CANCELLATION_H_

#include <atomic>

#include "absl/status/status.h"
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

// A CancellationGate decides before each tile of a kernel call, or before some parts of it, whether the runner's
// execution continues, by its RunOptions. Many threads ask the gate at once. Once a tile that writes state has passed,
// all later tiles pass: the execution can no longer be stopped.
class CancellationGate {
 public:
  // Begins an execution.
  void Open(const RunOptions& options) {
    options_ = options;
    const bool stoppable = options.cancellation != nullptr || options.deadline != absl::InfiniteFuture();
    state_.store(stoppable ? kStoppable : kMustFinish, std::memory_order_relaxed);
  }
  // Reports whether the next tile may run. `writes`: whether this tile writes state.
  bool Passes(bool writes) {
    State state = state_.load(std::memory_order_acquire);
    if (state == kStoppable) {
      const State next = Next(writes);
      if (next == kStoppable || state_.compare_exchange_strong(state, next, std::memory_order_acq_rel)) state = next;
    }
    return state == kStoppable || state == kMustFinish;
  }
  // Returns, after the execution, the error Cancelled or DeadlineExceeded if the gate stopped it, or OK.
  absl::Status status() const {
    const State state = state_.load(std::memory_order_relaxed);
    if (state == kCancelled) return absl::CancelledError("run: cancelled; no parameter was changed");
    if (state == kLate) return absl::DeadlineExceededError("run: the deadline has passed; no parameter was changed");
    return absl::OkStatus();
  }

 private:
  enum State : int { kStoppable, kMustFinish, kCancelled, kLate };

  State Next(bool writes) const {
    if (options_.cancellation != nullptr && options_.cancellation->cancelled()) return kCancelled;
    if (options_.deadline != absl::InfiniteFuture() && absl::Now() >= options_.deadline) return kLate;
    return writes ? kMustFinish : kStoppable;
  }

  RunOptions options_;
  std::atomic<State> state_{kMustFinish};
};

}  // namespace weft

#endif  // WEFT_GRAPH_RUN_CANCELLATION_H_
