// MaskTokens masks tokens to train a masked-language model (Devlin et al. 2019, section 3.1). Some tokens of each row
// are chosen as targets. A target becomes the mask token with probability 80%, a random token with 10%, and otherwise
// stays unchanged.
//
// AddNoise adds noise to training inputs. While training, a model reads true texts; in use it reads its own output.
// Noise reduces this mismatch.
#ifndef WEFT_TEXT_DATA_MASKING_H_
#define WEFT_TEXT_DATA_MASKING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/random.h"

namespace weft {

struct MaskingOptions {
  int64_t count = 1;  // targets per row; fewer if a row has fewer tokens to choose from
  int32_t mask = 0;   // the mask token's id
  int64_t vocabulary = 0;
};

struct MaskedPositions {         // [B, count], row by row
  std::vector<int32_t> indices;  // indices into tokens [B, T], from 0 to B·T - 1; 0 for unused entries
  std::vector<int32_t> targets;  // the original token; -100 for unused entries
  int64_t chosen = 0;            // the number of entries that are used
};

// Chooses up to `options.count` targets in each row, among the tokens for which `may` is true, and masks the targets in
// `tokens`. The random numbers depend only on the seed and step of `random`, on `options.count` and on the row. If the
// rows are a part of a batch, `first_row` is the row of the batch with which they begin.
void MaskTokens(const std::vector<bool>& may, int64_t rows, const MaskingOptions& options, RandomStream random,
                absl::Span<int32_t> tokens, MaskedPositions* out, int64_t first_row = 0);

// Replaces each token with probability `probability` by a random token in 0 .. vocabulary - 1. A token for which `may`
// is false stays unchanged; an empty `may` allows all tokens. `first`: position of the first token in its batch, if
// `tokens` is a part of a batch. A part gets the same noise as in the whole batch.
void AddNoise(absl::Span<int32_t> tokens, double probability, int64_t vocabulary, RandomStream random,
              const std::vector<bool>& may = {}, int64_t first = 0);

}  // namespace weft

#endif  // WEFT_TEXT_DATA_MASKING_H_
