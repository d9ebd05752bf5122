// WriteTranslationTokenizer prepares the tokenizer beside an encoder-decoder Transformer for Hugging Face's
// AutoTokenizer. No other folder includes this header.
//
//   WEFT_ASSIGN_OR_RETURN(const TranslationTokens tokens, WriteTranslationTokenizer("out", /*context=*/1024));
#ifndef WEFT_FORMATS_TRANSLATION_TOKENIZER_H_
#define WEFT_FORMATS_TRANSLATION_TOKENIZER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace weft {

// The ids of special tokens.
struct TranslationTokens {
  int32_t begin = 1, end = 2, padding = 0;
};

// Returns the special tokens of the tokenizer in `folder`, or the defaults of TranslationTokens if there is none. If
// the tokenizer is a tokenizer.json of Hugging Face, changes its input format to "text, end token", and writes
// tokenizer_config.json. `context`: maximum number of tokens of a text.
absl::StatusOr<TranslationTokens> WriteTranslationTokenizer(const std::string& folder, int64_t context);

}  // namespace weft

#endif  // WEFT_FORMATS_TRANSLATION_TOKENIZER_H_
