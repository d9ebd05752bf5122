// SampleToken chooses the next token from logits.
//
//   const int32_t token = SampleToken(logits, {.temperature = 0.8, .top_k = 40}, random.Uniform(step));
//   const std::vector<double> probabilities = Probabilities(logits);
//   const int32_t likeliest = Largest<double>(probabilities, 1)[0];
#ifndef WEFT_INFERENCE_RUNTIME_SAMPLING_H_
#define WEFT_INFERENCE_RUNTIME_SAMPLING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace weft {

// The options apply in this order: logit bias, repetition penalty, penalties of presence and frequency, temperature,
// top-k, top-p, min-p, typical-p. Each works on the tokens that the options before it leave, whose probabilities are
// scaled to a sum of 1.
struct SamplingOptions {
  // Numbers that are added to the logits of tokens. -infinity excludes a token.
  std::vector<std::pair<int32_t, float>> logit_bias = {};
  // For tokens that the text already has, positive logits are divided by this number, and negative logits are
  // multiplied by it (CTRL, Keskar et al., 2019). 1 disables the penalty.
  double repetition_penalty = 1;
  // Numbers in -2 .. 2 that are subtracted from the logits of tokens that were generated before, as in OpenAI's API:
  // `presence_penalty` once, and `frequency_penalty` for each occurrence. Tokens of the prompt do not count.
  double presence_penalty = 0, frequency_penalty = 0;
  double temperature = 1;  // divides the logits; 0 picks the most likely token
  int64_t top_k = 0;       // samples among the k most likely tokens; 0: all tokens
  // Samples among the fewest tokens, at least one, with at least this total probability (Holtzman et al., 2020).
  double top_p = 1;
  // Drops tokens whose probability is less than this fraction of the most likely token's (Nguyen et al., 2024). 0 keeps
  // all tokens.
  double min_p = 0;
  // Samples among the tokens whose log-probability is closest to its mean, at least one, and as few as have at least
  // this total probability (Meister et al., "Locally Typical Sampling", 2023). 1 keeps all tokens.
  double typical_p = 1;
  uint64_t seed = 0;  // equal seeds give equal texts
};

// Return softmax(logits), and the logarithm of its denominator, log Σ e^logit. Both are computed in f64.
std::vector<double> Probabilities(absl::Span<const float> logits);
double LogSumExp(absl::Span<const float> logits);

// Returns the indices of the `count` largest values, or of all if there are fewer, largest first. Equal values rank by
// their index.
template <class T>
std::vector<int32_t> Largest(absl::Span<const T> values, size_t count) {
  std::vector<int32_t> ranked(values.size());
  std::iota(ranked.begin(), ranked.end(), 0);
  count = std::min(count, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count), ranked.end(),
                    [&](int32_t a, int32_t b) {
                      const T x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
                      return x > y || (x == y && a < b);
                    });
  ranked.resize(count);
  return ranked;
}

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;  // natural logarithm of the token's probability
};

// Returns the log-probability of `token` in softmax(logits), and then those of the `count` likeliest of the first
// `tokens` tokens, likeliest first.
std::vector<TokenLogprob> Logprobs(absl::Span<const float> logits, int32_t token, size_t count, size_t tokens);

// Returns InvalidArgument for an option outside its range. Does not check the logit bias.
absl::Status Validate(const SamplingOptions& options);
// Returns InvalidArgument if the logit bias names a token outside 0 .. tokens - 1, or adds NaN or infinity.
absl::Status ValidateLogitBias(const SamplingOptions& options, int64_t tokens);

// The tokens of a text, with the number of times that each was generated; 0: only the prompt has the token.
using TokenCounts = absl::flat_hash_map<int32_t, int64_t>;
// Returns whether one of the three penalties is set. AdjustLogits needs no counts otherwise.
bool HasPenalties(const SamplingOptions& options);
// Applies the logit bias and the penalties.
void AdjustLogits(const TokenCounts& text, const SamplingOptions& options, absl::Span<float> logits);

// Returns the token with the highest logit, the first among equals, or 0 if all logits are NaN.
int32_t LikeliestToken(absl::Span<const float> logits);

// Samples from softmax(logits / temperature) among the tokens that top-k, top-p, min-p and typical-p leave, at least
// one. Does not apply the logit bias and the penalties. `uniform`: a random number in [0, 1). Of equal logits, the one
// with the lower index ranks first.
int32_t SampleToken(absl::Span<const float> logits, const SamplingOptions& options, double uniform);

}  // namespace weft

#endif  // WEFT_INFERENCE_RUNTIME_SAMPLING_H_
