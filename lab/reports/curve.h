// A Curve holds the values of one figure over the steps of a training run. These functions make it short enough to
// draw.
//
//   const Curve mean = RunningMean(losses, 25);
//   const Curve drawn = Thin(losses, 2000);   // keeps the minimum and the maximum of each interval of steps
#ifndef WEFT_LAB_REPORTS_CURVE_H_
#define WEFT_LAB_REPORTS_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

struct Point {
  int64_t step = 0;
  double value = 0;

  bool operator==(const Point&) const = default;
};
using Curve = std::vector<Point>;  // steps increase

// Returns the mean of each value and the up to `window` - 1 values before it. `window` >= 1.
Curve RunningMean(const Curve& curve, size_t window);

// Returns at most `limit` points of the curve: the first, the last, and the minimum and the maximum of each of equal
// intervals of the others. A curve of at most `limit` points stays unchanged. `limit` >= 4.
Curve Thin(const Curve& curve, size_t limit);

// Returns at most `limit` of `items`, such as the points of a curve, with equal numbers of items between them: the
// first, the last and others. `limit` >= 2.
template <class T>
std::vector<T> TakeEvenly(const std::vector<T>& items, size_t limit) {
  if (items.size() <= limit) return items;
  std::vector<T> taken;
  for (size_t i = 0; i < limit; ++i) taken.push_back(items[(items.size() - 1) * i / (limit - 1)]);
  return taken;
}

}  // namespace weft

#endif  // WEFT_LAB_REPORTS_CURVE_H_
