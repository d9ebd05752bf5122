// Correlations of two sequences of numbers, such as right values and a model's predictions.
//
//   PearsonCorrelation(right, predicted)    // of the values
//   SpearmanCorrelation(right, predicted)   // of their ranks
#ifndef WEFT_INFERENCE_CORRELATION_H_
#define WEFT_INFERENCE_CORRELATION_H_

#include <vector>

#include "absl/types/span.h"

namespace weft {

// Returns Pearson's r: cov(x, y) / (σ_x · σ_y), from -1 to 1. The spans have equal sizes. Returns NaN if there are
// fewer than two values, or if all values of x or of y are equal.
double PearsonCorrelation(absl::Span<const double> x, absl::Span<const double> y);
// Returns Spearman's ρ: Pearson's r of the ranks.
double SpearmanCorrelation(absl::Span<const double> x, absl::Span<const double> y);
// Returns the rank of each value, from 1. Equal values have the mean of their ranks.
std::vector<double> RankValues(absl::Span<const double> values);

}  // namespace weft

#endif  // WEFT_INFERENCE_CORRELATION_H_
