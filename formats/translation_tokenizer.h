// These functions read the special tokens of an encoder-decoder Transformer that is being converted, and prepare its
// tokenizer for Hugging Face's AutoTokenizer. No other folder includes this header.
//
//   WEFT_ASSIGN_OR_RETURN(const TranslationTokens tokens, ReadTranslationTokens("out", model.tokens));
//   WEFT_RETURN_IF_ERROR(WriteTranslationTokenizer("out", /*context=*/1024, tokens));
#ifndef WEFT_FORMATS_TRANSLATION_TOKENIZER_H_
#define WEFT_FORMATS_TRANSLATION_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/formats/weights.h"

namespace weft {

// The ids of special tokens. As in this project's runs, sources have the end token unless a file says otherwise.
struct TranslationTokens {
  int32_t begin = 1, end = 2, padding = 0;
  bool source_begin = false, source_end = true;
  bool published = false;  // true: generation_config.json and the tokenizer's input format tell them
};

// Returns the special tokens of the model whose tokenizer is in `folder`: those of generation_config.json, of `names`
// or of the tokenizer, in this order. If there is none, returns the defaults. The tokenizer of a published model may be
// of a kind that LoadTokenizer can't read.
absl::StatusOr<TranslationTokens> ReadTranslationTokens(const std::string& folder,
                                                        const std::optional<TokenNames>& names);
// If the tokenizer in `folder` is a tokenizer.json of Hugging Face, changes its input format to "text, end token", and
// writes tokenizer_config.json. `context`: maximum number of tokens of a text.
absl::Status WriteTranslationTokenizer(const std::string& folder, int64_t context, const TranslationTokens& tokens);

}  // namespace weft

#endif  // WEFT_FORMATS_TRANSLATION_TOKENIZER_H_
