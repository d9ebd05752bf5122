#include "weft/inference/correlation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "absl/algorithm/container.h"
#include "weft/core/status.h"

namespace weft {
namespace {

double Mean(absl::Span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double PearsonCorrelation(absl::Span<const double> x, absl::Span<const double> y) {
  WEFT_CHECK(x.size() == y.size());
  if (x.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  const double mean_x = Mean(x), mean_y = Mean(y);
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  if (xx == 0 || yy == 0) return std::numeric_limits<double>::quiet_NaN();
  return std::clamp(xy / (std::sqrt(xx) * std::sqrt(yy)), -1.0, 1.0);
}

double SpearmanCorrelation(absl::Span<const double> x, absl::Span<const double> y) {
  const auto is_nan = [](double value) { return std::isnan(value); };  // numbers that are not ordered have no ranks
  if (absl::c_any_of(x, is_nan) || absl::c_any_of(y, is_nan)) return std::numeric_limits<double>::quiet_NaN();
  return PearsonCorrelation(RankValues(x), RankValues(y));
}

std::vector<double> RankValues(absl::Span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    // The ranks begin + 1 .. end have this mean.
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = 0.5 * static_cast<double>(begin + 1 + end);
  }
  return ranks;
}

}  // namespace weft
