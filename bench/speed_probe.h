// A SpeedProbe measures the machine's present speed, which changes while other programs run.
#ifndef WEFT_BENCH_SPEED_PROBE_H_
#define WEFT_BENCH_SPEED_PROBE_H_

#include <cstddef>

#include "weft/base/arena.h"
#include "weft/lab/machine/measure.h"

namespace weft {

// A measurement takes about 0.3 s on all threads: first work that wakes the cores, then five pieces of 10 ms, whose
// median is the result.
class SpeedProbe {
 public:
  explicit SpeedProbe(int threads);
  struct Speed {
    double flops = 0, read = 0;  // operations and bytes per second of all threads; read is 0 if there is no memory
  };
  Speed Measure();

 private:
  Team team_;
  Arena arena_;
  std::byte* array_ = nullptr;  // null if there is no memory
};

}  // namespace weft

#endif  // WEFT_BENCH_SPEED_PROBE_H_
