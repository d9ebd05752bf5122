// CountIntervals counts values in intervals of equal width, for the histograms of a run's event file and insights.
//
//   const Histogram histogram = CountIntervals(absl::MakeConstSpan(values));
//   histogram[0].left, histogram[29].right;   // the minimum and the maximum
#ifndef WEFT_TRAIN_RUN_HISTOGRAM_H_
#define WEFT_TRAIN_RUN_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/types/span.h"

namespace weft {

inline constexpr int kHistogramIntervals = 30;  // the default of TensorBoard's own function

struct HistogramInterval {
  double left = 0, right = 0, count = 0;
};
using Histogram = std::array<HistogramInterval, kHistogramIntervals>;

// Counts value x in interval floor((x - min) / width), and the maximum in the last interval. If all values are equal,
// the last interval counts them. Values that are not finite do not count. TensorBoard's function histogram_pb counts in
// this way.
template <class T>
Histogram CountIntervals(absl::Span<const T> values) {
  Histogram histogram;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const T value : values) {
    const auto x = static_cast<double>(value);
    if (!std::isfinite(x)) continue;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  if (low > high) return histogram;
  const double width = (high - low) / kHistogramIntervals;
  for (int i = 0; i < kHistogramIntervals; ++i) {
    histogram[i].left = low + i * width;
    histogram[i].right = i + 1 < kHistogramIntervals ? low + (i + 1) * width : high;
  }
  for (const T value : values) {
    const auto x = static_cast<double>(value);
    if (!std::isfinite(x)) continue;
    const double index = width > 0 ? std::floor((x - low) / width) : kHistogramIntervals;
    histogram[static_cast<int>(std::min<double>(index, kHistogramIntervals - 1))].count += 1;
  }
  return histogram;
}

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_HISTOGRAM_H_
