// What a masked-language model is trained on (Devlin et al., 2019, 3.1): of each row some tokens are to be guessed. Of
// these 80% are hidden by the mask token, 10% are replaced by any token, and 10% stay as they are.
#ifndef WEFT_TEXT_MASKING_H_
#define WEFT_TEXT_MASKING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/random.h"

namespace weft {

struct MaskingOptions {
  int64_t count = 1;  // tokens of a row that are chosen; fewer where a row has fewer
  int32_t mask = 0;   // the mask token
  int64_t vocabulary = 0;
};

struct MaskedPositions {         // [B, count], row by row
  std::vector<int32_t> places;   // in tokens [B, T], from 0 to B·T - 1; 0 where there is nothing to guess
  std::vector<int32_t> targets;  // the token that was there; -100 where there is nothing to guess
  int64_t chosen = 0;            // how many there are to guess
};

// Chooses among the tokens that `may` allows, as many as options.count of each row, and changes them. What is drawn
// depends on `random`'s seed and step, and on the row's number.
void MaskTokens(const std::vector<bool>& may, int64_t rows, const MaskingOptions& options, RandomStream random,
                absl::Span<int32_t> tokens, MaskedPositions* out);

}  // namespace weft

#endif  // WEFT_TEXT_MASKING_H_
