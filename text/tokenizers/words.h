// These functions split a text into the words that GPT-2's and BERT's tokenizers encode separately.
//
//   for (size_t begin = 0; begin < text.size();) {
//     const size_t end = Gpt2WordEnd(text, begin);
//     ... text.substr(begin, end - begin) ...
//     begin = end;
//   }
//   BertWords(BertNormalize("Élan,\tvital", {}))   // "elan" "," "vital"
#ifndef WEFT_TEXT_TOKENIZERS_WORDS_H_
#define WEFT_TEXT_TOKENIZERS_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

// The expression in GPT-2's encoder.py that splits a text into words.
inline constexpr char kGpt2Words[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Returns the end of the word that begins at byte `begin`. The first matching alternative of kGpt2Words gives the word.
// `text` must be UTF-8, and `begin` less than text.size().
size_t Gpt2WordEnd(absl::string_view text, size_t begin);

struct BertNormalizer {
  bool clean_text = true;     // removes control characters and U+FFFD; replaces white space by ' '
  bool separate_cjk = true;   // makes each CJK ideograph a word
  bool strip_accents = true;  // decomposes characters (NFD) and drops combining marks
  bool lowercase = true;
};

// Returns `text`, which must be UTF-8, in its normalized form.
std::string BertNormalize(absl::string_view text, const BertNormalizer& normalizer);
// Returns the words of `text`, which must be UTF-8. White space separates words. Each punctuation character, and each
// ASCII symbol such as '$', is a word.
std::vector<absl::string_view> BertWords(absl::string_view text);
// Reports whether `code_point` is a word of its own: Unicode punctuation, or an ASCII symbol such as '$', which BERT
// treats as punctuation.
bool EndsWord(int32_t code_point);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_WORDS_H_
