// SampleToken chooses the next token from logits.
//
//   const int32_t token = SampleToken(logits, {.temperature = 0.8, .top_k = 40}, random.Uniform(step));
#ifndef WEFT_INFERENCE_SAMPLING_H_
#define WEFT_INFERENCE_SAMPLING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace weft {

// The options apply in this order: repetition penalty, temperature, top-k, top-p.
struct SamplingOptions {
  // Positive logits of tokens that the text already has are divided by this number, negative ones are multiplied by it
  // (CTRL, Keskar et al., 2019). 1 disables the penalty.
  double repetition_penalty = 1;
  double temperature = 1;  // divides the logits; 0 picks the most likely token
  int64_t top_k = 0;       // samples among the k most likely tokens; 0: all tokens
  double top_p = 1;   // samples among the fewest tokens with at least this total probability (Holtzman et al., 2020)
  uint64_t seed = 0;  // equal seeds give equal texts
};

// Returns InvalidArgument if an option is outside its range.
absl::Status Validate(const SamplingOptions& options);

// Applies the repetition penalty to the logits of `tokens`, which must be distinct.
void PenalizeRepetition(absl::Span<const int32_t> tokens, double penalty, absl::Span<float> logits);

// Samples from softmax(logits / temperature) among the tokens that top-k and top-p leave. `uniform`: a random number in
// [0, 1). Of equal logits, the one with the lower index ranks first.
int32_t SampleToken(absl::Span<const float> logits, const SamplingOptions& options, double uniform);

}  // namespace weft

#endif  // WEFT_INFERENCE_SAMPLING_H_
