// This header has the clock and the median that all measurements use.
#ifndef WEFT_LAB_MACHINE_MEASURE_H_
#define WEFT_LAB_MACHINE_MEASURE_H_

#include <algorithm>
#include <chrono>
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

}  // namespace weft

#endif  // WEFT_LAB_MACHINE_MEASURE_H_
