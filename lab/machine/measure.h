// This header has the clock, the median and the team of threads that measurements use.
#ifndef WEFT_LAB_MACHINE_MEASURE_H_
#define WEFT_LAB_MACHINE_MEASURE_H_

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace weft {

using Clock = std::chrono::steady_clock;
inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns the median of `values`, which must not be empty. The median of an even number of values is the mean of the
// middle two.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

// A Team is a fixed set of threads that run one function together, to measure peak speeds and matrix products.
//
//   Team team(2);
//   const double seconds = team.Run([](int thread) { ... });
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
    const Clock::time_point start = Clock::now();  // before the barrier: others may start before this thread goes on
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

#endif  // WEFT_LAB_MACHINE_MEASURE_H_
