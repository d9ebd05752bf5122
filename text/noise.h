// AddNoise adds noise to training inputs. While training, a model reads true texts; in use it reads its own output.
// Noise reduces this mismatch.
#ifndef WEFT_TEXT_NOISE_H_
#define WEFT_TEXT_NOISE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/random.h"

namespace weft {

// Replaces each token with probability `probability` by a random token in 0 .. vocabulary - 1. A token for which `may`
// is false stays unchanged; an empty `may` allows all tokens. `first`: position of the first token in its batch, if
// `tokens` is a part of a batch. A part gets the same noise as in the whole batch.
void AddNoise(absl::Span<int32_t> tokens, double probability, int64_t vocabulary, RandomStream random,
              const std::vector<bool>& may = {}, int64_t first = 0);

}  // namespace weft

#endif  // WEFT_TEXT_NOISE_H_
