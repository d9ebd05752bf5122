// Cuts a text into the words that BERT tokenizes one by one, after making it uniform.
//
//   BertWords("Élan,\tvital", {})   // "elan" "," "vital"
#ifndef WEFT_TEXT_BERT_WORDS_H_
#define WEFT_TEXT_BERT_WORDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

struct BertNormalizer {
  bool clean_text = true;     // drop controls, and read every white space as ' '
  bool separate_cjk = true;   // an ideograph is a word
  bool strip_accents = true;  // decompose (NFD) and drop combining marks
  bool lowercase = true;
};

// Words of `text`, which is UTF-8: between white space, with each character of punctuation a word of its own.
std::vector<std::string> BertWords(absl::string_view text, const BertNormalizer& normalizer);

}  // namespace weft

#endif  // WEFT_TEXT_BERT_WORDS_H_
