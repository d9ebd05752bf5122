// What logits say.
#ifndef WEFT_INFERENCE_PROBABILITIES_H_
#define WEFT_INFERENCE_PROBABILITIES_H_

#include <vector>

#include "absl/types/span.h"

namespace weft {

// softmax(logits), in f64.
std::vector<double> Probabilities(absl::Span<const float> logits);

}  // namespace weft

#endif  // WEFT_INFERENCE_PROBABILITIES_H_
