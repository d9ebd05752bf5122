// SampleToken makes a list of candidates, which each option shortens, and draws by the cumulative sums of their
// weights. It sorts the candidates only if an option needs their order.
#include "weft/inference/runtime/sampling.h"

#include <cmath>
#include <limits>

#include "weft/base/status.h"
#include "weft/ops/kernels/rows/rows.h"

namespace weft {
namespace {

struct Candidate {
  int32_t token;
  double weight;  // the probability divided by the most likely token's
};

double TotalWeight(const std::vector<Candidate>& candidates) {
  double sum = 0;
  for (const Candidate& each : candidates) sum += each.weight;
  return sum;
}

// Keeps the first candidates, at least one, and as few as have at least `share` of the total weight.
void KeepShare(double share, std::vector<Candidate>* candidates) {
  const double enough = share * TotalWeight(*candidates);
  auto end = candidates->begin();
  double sum = (end++)->weight;
  while (end != candidates->end() && sum < enough) sum += (end++)->weight;
  candidates->erase(end, candidates->end());
}

// Sorts candidates by the distance of -log(probability) from the entropy, which is its mean. The closest comes first.
void SortByTypicality(std::vector<Candidate>* candidates) {
  const double log_total = std::log(TotalWeight(*candidates));
  const auto surprise = [&](const Candidate& each) { return log_total - std::log(each.weight); };
  double entropy = 0;
  for (const Candidate& each : *candidates) {
    if (each.weight > 0) entropy += std::exp(-surprise(each)) * surprise(each);
  }
  std::stable_sort(candidates->begin(), candidates->end(), [&](const Candidate& a, const Candidate& b) {
    return std::abs(surprise(a) - entropy) < std::abs(surprise(b) - entropy);
  });
}

}  // namespace

std::vector<double> Probabilities(absl::Span<const float> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  std::vector<double> probabilities;
  double sum = 0;
  for (const float logit : logits) sum += probabilities.emplace_back(std::exp(logit - max));
  for (double& each : probabilities) each /= sum;
  return probabilities;
}

double LogSumExp(absl::Span<const float> logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  return highest + std::log(sum);
}

absl::Status Validate(const SamplingOptions& options) {
  const auto invalid = [](const char* name, double value, const char* wanted) {
    return InvalidArgument(name, ": ", value, " is not ", wanted);
  };
  const bool penalty = std::isfinite(options.repetition_penalty) && options.repetition_penalty > 0;
  if (!penalty) return invalid("repetition-penalty", options.repetition_penalty, "a number above 0");
  if (!(options.temperature >= 0)) return invalid("temperature", options.temperature, "a number from 0");
  if (options.top_k < 0) return invalid("top-k", static_cast<double>(options.top_k), "a number from 0");
  for (const auto& [name, value] : {std::pair("presence-penalty", options.presence_penalty),
                                    std::pair("frequency-penalty", options.frequency_penalty)}) {
    if (!(std::abs(value) <= 2)) return invalid(name, value, "a number in [-2, 2]");
  }
  for (const auto& [name, value] : {std::pair("top-p", options.top_p), std::pair("min-p", options.min_p),
                                    std::pair("typical-p", options.typical_p)}) {
    if (!(value >= 0 && value <= 1)) return invalid(name, value, "a number in [0, 1]");
  }
  return absl::OkStatus();
}

absl::Status ValidateLogitBias(const SamplingOptions& options, int64_t tokens) {
  for (const auto& [token, bias] : options.logit_bias) {
    if (token >= 0 && token < tokens && bias < std::numeric_limits<float>::infinity()) continue;
    return InvalidArgument("logit-bias: the token ", token, " gets the number ", bias, ", wanted a token from 0 to ",
                           tokens - 1, " and a number below infinity");
  }
  return absl::OkStatus();
}

bool HasPenalties(const SamplingOptions& options) {
  return options.repetition_penalty != 1 || options.presence_penalty != 0 || options.frequency_penalty != 0;
}

void AdjustLogits(const TokenCounts& text, const SamplingOptions& options, absl::Span<float> logits) {
  for (const auto& [token, bias] : options.logit_bias) logits[static_cast<size_t>(token)] += bias;
  const float factor = static_cast<float>(options.repetition_penalty);
  for (const auto& [token, count] : text) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / factor : logit * factor;
    const double presence = count > 0 ? options.presence_penalty : 0;
    logit -= static_cast<float>(presence + static_cast<double>(count) * options.frequency_penalty);
  }
}

std::vector<TokenLogprob> Logprobs(absl::Span<const float> logits, int32_t token, size_t count, size_t tokens) {
  const double total = LogSumExp(logits);
  std::vector<int32_t> ranked = Largest(logits.first(tokens), count);
  ranked.insert(ranked.begin(), token);
  std::vector<TokenLogprob> result;
  for (const int32_t each : ranked) {
    result.push_back({each, static_cast<float>(logits[static_cast<size_t>(each)] - total)});
  }
  return result;
}

int32_t LikeliestToken(absl::Span<const float> logits) {
  const auto first_above = Selects<float>().first_above;
  const int64_t size = static_cast<int64_t>(logits.size());
  float highest = -std::numeric_limits<float>::infinity();
  int64_t likeliest = 0;
  for (int64_t i = first_above(logits.data(), 0, size, highest); i < size;
       i = first_above(logits.data(), i + 1, size, highest)) {
    if (std::isnan(logits[static_cast<size_t>(i)])) continue;  // first_above also stops at a NaN
    highest = logits[static_cast<size_t>(i)];
    likeliest = i;
  }
  return static_cast<int32_t>(likeliest);
}

int32_t SampleToken(absl::Span<const float> logits, const SamplingOptions& options, double uniform) {
  const int32_t likeliest = LikeliestToken(logits);
  if (options.temperature == 0) return likeliest;
  std::vector<int32_t> ranked(logits.size());
  std::iota(ranked.begin(), ranked.end(), 0);
  const auto top = options.top_k > 0 ? static_cast<size_t>(options.top_k) : logits.size();
  if (top < logits.size() || options.top_p < 1) ranked = Largest(logits, top);
  std::vector<Candidate> candidates;
  for (const int32_t token : ranked) {
    const double difference =
        static_cast<double>(logits[static_cast<size_t>(token)]) - logits[static_cast<size_t>(likeliest)];
    candidates.push_back({token, std::exp(difference / options.temperature)});
  }
  if (options.top_p < 1) KeepShare(options.top_p, &candidates);
  if (options.min_p > 0) {
    std::erase_if(candidates, [&](const Candidate& each) { return each.weight < options.min_p; });
  }
  if (options.typical_p < 1) {
    SortByTypicality(&candidates);
    KeepShare(options.typical_p, &candidates);
  }
  const double drawn = uniform * TotalWeight(candidates);
  double sum = 0;
  for (const Candidate& each : candidates) {
    sum += each.weight;
    if (sum > drawn) return each.token;
  }
  return candidates.back().token;
}

}  // namespace weft
