// Each thread has a Tally of its own, so that counting adds no traffic between cores.
#include "weft/bench/schedule/node_work.h"

#include <algorithm>
#include <deque>
#include <mutex>

namespace weft {
namespace {

struct Tallies {
  std::mutex mutex;
  std::deque<Tally> of_threads;
};

Tallies& AllTallies() {
  static Tallies* tallies = new Tallies;
  return *tallies;
}

}  // namespace

Tally TakeTally() {
  Tally sum;
  const std::lock_guard lock(AllTallies().mutex);
  for (Tally& tally : AllTallies().of_threads) {
    sum.executed += tally.executed;
    sum.busy_seconds += tally.busy_seconds;
    tally = {};
  }
  return sum;
}

Tally& NodeWork::AddTally() {
  const std::lock_guard lock(AllTallies().mutex);
  my_tally_ = &AllTallies().of_threads.emplace_back();
  return *my_tally_;
}

void NodeWork::Spin(uint64_t times) {
  uint64_t x = 1;
  for (uint64_t i = 0; i < times; ++i) {
    x = x * 0x9e3779b97f4a7c15 + i;
    asm volatile("" : "+r"(x));
  }
}

NodeWork::NodeWork(double microseconds) : microseconds_(microseconds) {
  if (microseconds == 0) return;
  constexpr uint64_t kSpins = 1'000'000;
  double best = 1;
  for (int i = 0; i < 5; ++i) {
    const Clock::time_point start = Clock::now();
    Spin(kSpins);
    best = std::min(best, SecondsSince(start));
  }
  spins_ = std::max<uint64_t>(1, static_cast<uint64_t>(microseconds * 1e-6 / best * kSpins));
}

}  // namespace weft
