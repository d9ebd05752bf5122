// Gpt2WordEnd splits a text into the words that GPT-2's tokenizer encodes separately.
//
//   for (size_t begin = 0; begin < text.size();) {
//     const size_t end = Gpt2WordEnd(text, begin);
//     ... text.substr(begin, end - begin) ...
//     begin = end;
//   }
#ifndef WEFT_TEXT_TOKENIZERS_GPT2_WORDS_H_
#define WEFT_TEXT_TOKENIZERS_GPT2_WORDS_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace weft {

// Returns the end of the word that begins at byte `begin`. The first matching alternative of this expression gives the
// word:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+      (GPT-2's encoder.py)
// `text` must be UTF-8, and `begin` less than text.size().
size_t Gpt2WordEnd(absl::string_view text, size_t begin);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_GPT2_WORDS_H_
