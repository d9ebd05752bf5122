// A NodeWork stands for the work of a node in a synthetic graph. Calling it counts one node, and keeps the calling
// thread busy for a given time.
#ifndef WEFT_BENCH_SCHEDULE_NODE_WORK_H_
#define WEFT_BENCH_SCHEDULE_NODE_WORK_H_

#include <cstdint>

#include "weft/lab/machine/measure.h"

namespace weft {

// The counts of one thread. Each Tally has a cache line of its own, so that threads do not contend.
struct alignas(64) Tally {
  uint64_t executed = 0;
  double busy_seconds = 0;
};

// Returns the sums over all threads since the last call of TakeTally. No node may run during the call.
Tally TakeTally();

class NodeWork {
 public:
  // Measures how many iterations of a loop take `microseconds`. If `microseconds` is 0, nodes only count.
  explicit NodeWork(double microseconds);

  double microseconds() const { return microseconds_; }

  void operator()() const {
    Tally& mine = my_tally_ != nullptr ? *my_tally_ : AddTally();
    ++mine.executed;
    if (spins_ == 0) return;
    const Clock::time_point start = Clock::now();
    Spin(spins_);
    mine.busy_seconds += SecondsSince(start);
  }

 private:
  static Tally& AddTally();
  static void Spin(uint64_t times);

  inline static thread_local constinit Tally* my_tally_ = nullptr;
  double microseconds_ = 0;
  uint64_t spins_ = 0;
};

}  // namespace weft

#endif  // WEFT_BENCH_SCHEDULE_NODE_WORK_H_
