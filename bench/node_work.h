// What a node of a benchmark's graph does, under whatever policy: it counts itself, and keeps its thread busy a while.
#ifndef WEFT_BENCH_NODE_WORK_H_
#define WEFT_BENCH_NODE_WORK_H_

#include <cstdint>

#include "weft/lab/measure.h"

namespace weft {

// Of one thread, on a cache line of its own.
struct alignas(64) Tally {
  uint64_t executed = 0;
  double busy_seconds = 0;
};

// Of all threads together, since the last call. Nobody may be at work meanwhile.
Tally TakeTally();

class NodeWork {
 public:
  // Finds out how often to spin for so many microseconds. Zero: nodes do nothing, and busy times are not taken.
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

#endif  // WEFT_BENCH_NODE_WORK_H_
