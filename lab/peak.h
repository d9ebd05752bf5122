// The most that the machine does on a team of threads: multiply-adds in registers, and traffic with the memory.
#ifndef WEFT_LAB_PEAK_H_
#define WEFT_LAB_PEAK_H_

#include <cstddef>

#include "weft/lab/team.h"

namespace weft {

// Operations a second, the best of some tries of `seconds` in all; a multiply-add counts as two. 0 where the CPU has no
// instruction for it.
double PeakF32(Team* team, double seconds);
double PeakBF16(Team* team, double seconds);

struct Bandwidth {
  double read = 0, write = 0, copy = 0;  // bytes a second; of a copy those read and those written count
};
// With arrays of so many bytes, each thread on a part of its own; the best passes of `seconds` for each figure. Arrays
// larger than the caches together give the memory's bandwidth. Stores are ordinary ones, as in ops.
Bandwidth PeakBandwidth(Team* team, size_t array_bytes, double seconds);

}  // namespace weft

#endif  // WEFT_LAB_PEAK_H_
