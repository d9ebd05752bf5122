// Noise for the inputs of training, against the mismatch of training, where a model sees true texts, and use, where it
// sees its own.
#ifndef WEFT_TEXT_NOISE_H_
#define WEFT_TEXT_NOISE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/random.h"

namespace weft {

// Replaces each token, with probability `part`, by one drawn from 0 .. vocabulary - 1. Those that `may` does not
// allow stay; an empty `may` allows all.
void AddNoise(absl::Span<int32_t> tokens, double part, int64_t vocabulary, RandomStream random,
              const std::vector<bool>& may = {});

}  // namespace weft

#endif  // WEFT_TEXT_NOISE_H_
