// Probabilities turns logits into probabilities.
#ifndef WEFT_INFERENCE_PROBABILITIES_H_
#define WEFT_INFERENCE_PROBABILITIES_H_

#include <vector>

#include "absl/types/span.h"

namespace weft {

// Returns softmax(logits), computed in f64.
std::vector<double> Probabilities(absl::Span<const float> logits);

}  // namespace weft

#endif  // WEFT_INFERENCE_PROBABILITIES_H_
