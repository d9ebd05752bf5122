#include "weft/inference/probabilities.h"

#include <algorithm>
#include <cmath>

namespace weft {

std::vector<double> Probabilities(absl::Span<const float> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  std::vector<double> probabilities;
  double sum = 0;
  for (const float logit : logits) sum += probabilities.emplace_back(std::exp(logit - max));
  for (double& each : probabilities) each /= sum;
  return probabilities;
}

}  // namespace weft
