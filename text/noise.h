// Noise for the inputs of training, against the mismatch of training, where a model sees true texts, and use, where it
// sees its own.
#ifndef WEFT_TEXT_NOISE_H_
#define WEFT_TEXT_NOISE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "weft/core/random.h"

namespace weft {

// Replaces each token, with probability `part`, by one drawn from 0 .. vocabulary - 1. Negative ones, which are
// padding, stay.
void AddNoise(absl::Span<int32_t> tokens, double part, int64_t vocabulary, RandomStream random);

}  // namespace weft

#endif  // WEFT_TEXT_NOISE_H_
