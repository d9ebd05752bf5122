// SampleToken ranks tokens only if top-k or top-p asks for it, then draws by the cumulative sums of the probabilities.
#include "weft/inference/sampling.h"

#include <cmath>

#include "weft/core/status.h"

namespace weft {

std::vector<double> Probabilities(absl::Span<const float> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  std::vector<double> probabilities;
  double sum = 0;
  for (const float logit : logits) sum += probabilities.emplace_back(std::exp(logit - max));
  for (double& each : probabilities) each /= sum;
  return probabilities;
}

absl::Status Validate(const SamplingOptions& options) {
  const auto invalid = [](const char* name, double value, const char* wanted) {
    return InvalidArgument(name, " is ", value, ", wanted ", wanted);
  };
  const bool penalty = std::isfinite(options.repetition_penalty) && options.repetition_penalty > 0;
  if (!penalty) return invalid("repetition_penalty", options.repetition_penalty, "a number above 0");
  if (!(options.temperature >= 0)) return invalid("temperature", options.temperature, "a number from 0");
  if (options.top_k < 0) return invalid("top_k", static_cast<double>(options.top_k), "a number from 0");
  if (!(options.top_p > 0 && options.top_p <= 1)) return invalid("top_p", options.top_p, "a number in (0, 1]");
  return absl::OkStatus();
}

void PenalizeRepetition(absl::Span<const int32_t> tokens, double penalty, absl::Span<float> logits) {
  const float factor = static_cast<float>(penalty);
  for (int32_t token : tokens) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / factor : logit * factor;
  }
}

int32_t SampleToken(absl::Span<const float> logits, const SamplingOptions& options, double uniform) {
  const auto highest = std::max_element(logits.begin(), logits.end());
  if (options.temperature == 0) return static_cast<int32_t>(highest - logits.begin());
  std::vector<int32_t> ranked(logits.size());
  std::iota(ranked.begin(), ranked.end(), 0);
  if (options.top_k > 0 || options.top_p < 1) {
    ranked = Largest(logits, options.top_k > 0 ? static_cast<size_t>(options.top_k) : logits.size());
  }
  std::vector<double> cumulative;
  double sum = 0;
  for (int32_t token : ranked) {
    sum += std::exp((static_cast<double>(logits[static_cast<size_t>(token)]) - *highest) / options.temperature);
    cumulative.push_back(sum);
  }
  if (options.top_p < 1) {
    const auto enough = std::lower_bound(cumulative.begin(), cumulative.end(), options.top_p * sum);
    cumulative.erase(std::min(enough + 1, cumulative.end()), cumulative.end());
    sum = cumulative.back();
  }
  const auto drawn = std::upper_bound(cumulative.begin(), cumulative.end(), uniform * sum) - cumulative.begin();
  return ranked[std::min(static_cast<size_t>(drawn), cumulative.size() - 1)];
}

}  // namespace weft
