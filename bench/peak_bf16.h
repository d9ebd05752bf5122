// This function measures the machine's peak of products of bf16 numbers.
#ifndef WEFT_BENCH_PEAK_BF16_H_
#define WEFT_BENCH_PEAK_BF16_H_

#include "weft/lab/machine/measure.h"

namespace weft {

// Returns operations per second of all threads; a multiply-add counts as two. The figure is the best of several tries,
// which take `seconds` together. Uses AMX if the CPU has it, as products do. Returns 0 if the CPU has no instruction
// for bf16 products.
double PeakBF16(Team* team, double seconds);

}  // namespace weft

#endif  // WEFT_BENCH_PEAK_BF16_H_
