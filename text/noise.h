// Adds noise to training inputs. In training a model sees true texts, in use its own output; noise reduces the
// mismatch.
#ifndef WEFT_TEXT_NOISE_H_
#define WEFT_TEXT_NOISE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/random.h"

namespace weft {

// Replaces each token with the given probability by a random one in 0 .. vocabulary - 1. A token for which `may` is
// false stays unchanged; an empty `may` allows all tokens.
void AddNoise(absl::Span<int32_t> tokens, double probability, int64_t vocabulary, RandomStream random,
              const std::vector<bool>& may = {});

}  // namespace weft

#endif  // WEFT_TEXT_NOISE_H_
