// These functions measure the machine's peaks on a team of threads: multiply-adds in registers, and memory bandwidth.
#ifndef WEFT_LAB_MACHINE_PEAK_H_
#define WEFT_LAB_MACHINE_PEAK_H_

#include <cstddef>

#include "weft/base/arena.h"
#include "weft/lab/machine/measure.h"

namespace weft {

// Return operations per second of all threads; a multiply-add counts as two. The figure is the best of several tries,
// which take `seconds` together. PeakBF16 uses AMX if the CPU has it, as products do. It returns 0 if the CPU has
// no instruction for bf16 products.
double PeakF32(Team* team, double seconds);
double PeakBF16(Team* team, double seconds);

struct Bandwidth {
  double read = 0, write = 0, copy = 0;  // bytes per second; a copy counts its reads and its writes
};
// Measures passes over two arrays of `array_bytes` each, divided among the threads. Each of the three figures is the
// best of several tries, which take `seconds` together. Arrays larger than all caches give the bandwidth of the memory.
// Stores are ordinary ones, as in ops, not non-temporal. All figures are 0 if there is no memory for the arrays.
Bandwidth PeakBandwidth(Team* team, size_t array_bytes, double seconds);

// Measures the machine's present speed, which changes while other programs run. A measurement takes about 0.3 s on all
// threads: first work that wakes the cores, then five pieces of 10 ms, whose median is the result.
class SpeedProbe {
 public:
  explicit SpeedProbe(int threads);
  struct Speed {
    double flops = 0, read = 0;  // operations and bytes per second of all threads; read is 0 if there is no memory
  };
  Speed Measure();

 private:
  static constexpr size_t kBytes = size_t{256} << 20;  // 256 MiB: more than the caches of most CPUs hold

  Team team_;
  Arena arena_;
  std::byte* words_ = nullptr;
  size_t portion_ = 0;  // words of each thread
};

}  // namespace weft

#endif  // WEFT_LAB_MACHINE_PEAK_H_
