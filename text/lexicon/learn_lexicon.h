// LearnLexicon learns from sentences and their translations which tokens translate which.
//
//   const Lexicon lexicon = LearnLexicon(pairs, {.source_vocabulary = 8000});
#ifndef WEFT_TEXT_LEXICON_LEARN_LEXICON_H_
#define WEFT_TEXT_LEXICON_LEARN_LEXICON_H_

#include <cstdint>

#include "absl/types/span.h"
#include "weft/text/data/sentence_pairs.h"
#include "weft/text/lexicon/lexicon.h"

namespace weft {

struct LearnLexiconOptions {
  int64_t source_vocabulary = 0;   // number of source tokens; ids must be below it
  int64_t max_translations = 100;  // maximum number of translations of a token to keep
  int64_t iterations = 5;          // of expectation maximisation
};

// Learns IBM Model 1 (Brown et al., "The mathematics of statistical machine translation", 1993). Each target token is
// the translation of one source token or of the NULL word. Model 1 assumes that all of them are equally likely,
// whatever their positions. Keeps the most likely translations of each source token. The memory is about 70 bytes for
// each two tokens that occur in one pair of sentences.
Lexicon LearnLexicon(absl::Span<const SentencePair> pairs, const LearnLexiconOptions& options);

}  // namespace weft

#endif  // WEFT_TEXT_LEXICON_LEARN_LEXICON_H_
