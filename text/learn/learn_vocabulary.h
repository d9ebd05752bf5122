// LearnVocabulary learns tokens by merging the most frequent pair of neighbours, again and again, as the trainers of
// Hugging Face's `tokenizers` do for byte-level BPE and WordPiece. Of equally frequent pairs, the one with the lowest
// left id is merged first, then the one with the lowest right id.
//
//   Vocabulary vocabulary = *Vocabulary::Create({"a", "b"});
//   SymbolWords words;
//   words.Add({0, 1}, /*count=*/5);                                        // "ab" occurs five times
//   LearnVocabulary(std::move(words), {.vocabulary = 100}, &vocabulary);   // {0, 1, 2}, where token 2 is "ab"
#ifndef WEFT_TEXT_LEARN_LEARN_VOCABULARY_H_
#define WEFT_TEXT_LEARN_LEARN_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "weft/text/tokenizers/vocabulary.h"

namespace weft {

// Distinct words of a text as token ids, which lie one word after the other.
struct SymbolWords {
  struct Word {
    size_t begin, size;  // in `symbols`
    int64_t count;       // in the text
  };
  std::vector<int32_t> symbols;
  std::vector<Word> words;

  void Add(absl::Span<const int32_t> word, int64_t count) {
    words.push_back({symbols.size(), word.size(), count});
    symbols.insert(symbols.end(), word.begin(), word.end());
  }
};

struct VocabularyLimits {
  int64_t vocabulary = 0;   // maximum number of tokens
  int64_t min_count = 2;    // how often a pair must occur to be merged
  std::string prefix = {};  // of tokens that don't begin a word, such as "##"; the right part of a merge loses it
};

struct LearntMerge {
  int32_t left, right, merged;
  friend bool operator==(const LearntMerge&, const LearntMerge&) = default;
};

// Adds learnt tokens to `vocabulary`. Returns the merges in the order in which they are learnt, each once. The time of
// a merge depends on the words that contain its pair, not on the whole text. A learnt token that `vocabulary` has
// already, such as a special token, keeps its id.
std::vector<LearntMerge> LearnVocabulary(SymbolWords words, const VocabularyLimits& limits, Vocabulary* vocabulary);

}  // namespace weft

#endif  // WEFT_TEXT_LEARN_LEARN_VOCABULARY_H_
