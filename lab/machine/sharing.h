// MeasureSharing measures what workers lose because they share a machine: the clock and the execution units of its
// cores, its caches and its memory. `weft calibrate --threads` writes these figures, and simulations use them.
//
//   const std::vector<SharingRow> rows = MeasureSharing({1, 2, 4});
#ifndef WEFT_LAB_MACHINE_SHARING_H_
#define WEFT_LAB_MACHINE_SHARING_H_

#include <vector>

#include "absl/types/span.h"

namespace weft {

// What a number of threads reach together. 0: not measured; simulations then assume that nothing is lost.
struct SharingRow {
  int threads = 1;
  double flops = 0;               // f32 operations per second of all threads; a multiply-add counts as two
  double bytes = 0;               // bytes per second that all threads copy in memory
  double wake_seconds = 0;        // from the beginning of an execution until its last helper works
  double moved_byte_seconds = 0;  // to read a byte that another core wrote, beyond the time to read an own byte
};
struct SharingFigure {
  const char* name;  // in files
  double SharingRow::*figure;
  bool is_rate;  // whether it is of all threads together, and so grows with their number
};
inline constexpr SharingFigure kSharingFigures[] = {
    {"flops", &SharingRow::flops, true},
    {"bytes", &SharingRow::bytes, true},
    {"wake_seconds", &SharingRow::wake_seconds, false},
    {"moved_byte_seconds", &SharingRow::moved_byte_seconds, false},
};

// Measure a row for each number of threads, each at least 1. MeasureMemory sets only `bytes`. MeasureSharing sets all
// figures; they are right only if no other program runs. Measuring one row takes about a second.
std::vector<SharingRow> MeasureMemory(absl::Span<const int> threads);
std::vector<SharingRow> MeasureSharing(absl::Span<const int> threads);

// Returns the row for any number of threads. `rows`: at least one, in ascending order of threads. Between two rows,
// figures are interpolated. Beyond the last row and below the first one, each thread reaches what it reaches there.
SharingRow SharingOf(absl::Span<const SharingRow> rows, int threads);

}  // namespace weft

#endif  // WEFT_LAB_MACHINE_SHARING_H_
