// TokenBytes gives the number of bytes that each token adds to a text. So the loss of tokens can be stated for bytes,
// which compares models with different tokenizers.
//
//   const std::vector<int32_t> bytes = TokenBytes(*tokenizer);
//   double sum = 0;
//   for (const int32_t id : ids) sum += bytes[id];       // bits a byte: loss · ids.size() / sum / ln 2
#ifndef WEFT_TEXT_TOKENIZERS_TOKEN_BYTES_H_
#define WEFT_TEXT_TOKENIZERS_TOKEN_BYTES_H_

#include <cstdint>
#include <vector>

#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

inline constexpr int32_t kUnknownBytes = -1;

// Returns, by id, how many bytes a token adds after an ordinary token. Special tokens add none; the unknown token has
// kUnknownBytes, because it stands for any text. A tokenizer that changes texts, for example to lower case, has the
// bytes of the changed text.
std::vector<int32_t> TokenBytes(const Tokenizer& tokenizer);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_TOKEN_BYTES_H_
