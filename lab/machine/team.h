// A Team is a fixed set of threads that run one function together, to measure peak speeds and matrix products.
//
//   Team team(2);
//   const double seconds = team.Run([](int thread) { ... });
#ifndef WEFT_LAB_MACHINE_TEAM_H_
#define WEFT_LAB_MACHINE_TEAM_H_

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "weft/lab/machine/measure.h"

namespace weft {

class Team {
 public:
  explicit Team(int threads) : start_(threads), end_(threads) {
    for (int t = 1; t < threads; ++t) {
      others_.emplace_back([this, t] {
        while (true) {
          start_.arrive_and_wait();
          if (!work_) return;
          work_(t);
          end_.arrive_and_wait();
        }
      });
    }
  }
  ~Team() {
    work_ = nullptr;
    start_.arrive_and_wait();
    for (std::thread& thread : others_) thread.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const { return static_cast<int>(others_.size()) + 1; }

  // Calls work(thread) on every thread; the caller is thread 0. Returns the seconds until all threads have finished.
  double Run(const std::function<void(int)>& work) {
    work_ = work;
    const Clock::time_point start =
        Clock::now();  // before the barrier, since others may start before this thread runs again
    start_.arrive_and_wait();
    work_(0);
    end_.arrive_and_wait();
    return SecondsSince(start);
  }

 private:
  std::barrier<> start_, end_;
  std::function<void(int)> work_;
  std::vector<std::thread> others_;
};

}  // namespace weft

#endif  // WEFT_LAB_MACHINE_TEAM_H_
