// These functions measure the machine's peaks on a team of threads: multiply-adds in registers, and memory bandwidth.
#ifndef WEFT_LAB_MACHINE_PEAK_H_
#define WEFT_LAB_MACHINE_PEAK_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "weft/lab/machine/measure.h"

namespace weft {

// The operations or bytes of a piece of work, and the seconds that it took.
struct TimedWork {
  double amount = 0, seconds = 0;
};
// Calls `work` again and again for `seconds`. Returns the amount per second of the fastest call.
double BestRate(double seconds, const std::function<TimedWork()>& work);

// A round adds to each of this many independent sums. They are more than the latency of a multiply-add times the number
// of multiply-adds that a core starts per cycle.
inline constexpr int kRoundSums = 12;
void Keep(float result);  // uses `result`, so that the compiler computes it
// A function that makes rounds of independent multiply-adds, and returns the number of operations: two for each.
using RoundsFunction = double (*)(int64_t rounds);
// Returns the widest version for f32 that may run.
RoundsFunction F32Rounds();
// Lets each thread make `count` rounds.
TimedWork RunRounds(Team* team, RoundsFunction rounds, int64_t count = 1'000'000);
// Reads an array, which is divided among the threads, once. It has at least 512 bytes for each thread.
TimedWork ReadArray(Team* team, const std::byte* array, size_t bytes);

// Returns operations per second of all threads; a multiply-add counts as two. The figure is the best of several tries,
// which take `seconds` together.
double PeakF32(Team* team, double seconds);

struct Bandwidth {
  double read = 0, write = 0, copy = 0;  // bytes per second; a copy counts its reads and its writes
};
// Measures passes over two arrays of `array_bytes` each, divided among the threads. Each of the three figures is the
// best of several tries, which take `seconds` together. Arrays larger than all caches give the bandwidth of the memory.
// Stores are ordinary ones, as in ops, not non-temporal. All figures are 0 if there is no memory for the arrays.
Bandwidth PeakBandwidth(Team* team, size_t array_bytes, double seconds);

}  // namespace weft

#endif  // WEFT_LAB_MACHINE_PEAK_H_
