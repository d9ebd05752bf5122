// Measures the machine's peaks on a team of threads: multiply-adds in registers, and memory bandwidth.
#ifndef WEFT_LAB_PEAK_H_
#define WEFT_LAB_PEAK_H_

#include <cstddef>

#include "weft/lab/team.h"

namespace weft {

// Return operations a second, of which a multiply-add counts as two: the best of tries that take `seconds` together.
// PeakBF16 returns 0 if the CPU has no instruction for bf16 products.
double PeakF32(Team* team, double seconds);
double PeakBF16(Team* team, double seconds);

struct Bandwidth {
  double read = 0, write = 0, copy = 0;  // bytes a second; a copy counts bytes read and bytes written
};
// Measures passes over arrays of `array_bytes`, of which each thread has its own portion. Each figure is the best of
// passes that take `seconds` together. Arrays larger than all caches give the memory's bandwidth. Stores are ordinary
// ones (not non-temporal), as in ops.
Bandwidth PeakBandwidth(Team* team, size_t array_bytes, double seconds);

}  // namespace weft

#endif  // WEFT_LAB_PEAK_H_
