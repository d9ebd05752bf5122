// These functions normalize a text, and split it into the words that BERT's tokenizer encodes separately.
//
//   BertWords(BertNormalize("Élan,\tvital", {}))   // "elan" "," "vital"
#ifndef WEFT_TEXT_TOKENIZERS_BERT_WORDS_H_
#define WEFT_TEXT_TOKENIZERS_BERT_WORDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

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

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_BERT_WORDS_H_
