// How the next token is chosen from logits.
#ifndef WEFT_INFERENCE_SAMPLING_H_
#define WEFT_INFERENCE_SAMPLING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace weft {

// In this order: the repetition penalty, the temperature, top-k, top-p.
struct SamplingOptions {
  // What logits of tokens that the text has are divided by if above 0, and multiplied with if below (CTRL, Keskar et
  // al., 2019).
  double repetition_penalty = 1;
  double temperature = 1;  // divides the logits; 0: always the likeliest token
  int64_t top_k = 0;       // draw among the k likeliest; 0: among all
  double top_p = 1;        // draw among the fewest that have this probability together (Holtzman et al., 2020)
  uint64_t seed = 0;       // one seed gives one text
};

absl::Status Validate(const SamplingOptions& options);

// Does what the repetition penalty says, for each of `tokens`, which are different.
void PenalizeRepetition(absl::Span<const int32_t> tokens, double penalty, absl::Span<float> logits);

// Draws from softmax(logits / temperature) over what top-k and top-p leave, with `uniform` of [0, 1). Equal logits rank
// by their index.
int32_t SampleToken(absl::Span<const float> logits, const SamplingOptions& options, double uniform);

}  // namespace weft

#endif  // WEFT_INFERENCE_SAMPLING_H_
