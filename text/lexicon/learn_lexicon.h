// LearnLexicon learns from sentences and their translations which tokens translate which.
//
//   const Lexicon lexicon = LearnLexicon(pairs, {.source_vocabulary = 8000});
#ifndef WEFT_TEXT_LEXICON_LEARN_LEXICON_H_
#define WEFT_TEXT_LEXICON_LEARN_LEXICON_H_

#include <cstdint>

#include "absl/types/span.h"
#include "weft/text/lexicon/lexicon.h"
#include "weft/text/sentence_pairs.h"

namespace weft {

struct LearnLexiconOptions {
  int64_t source_vocabulary = 0;  // number of source tokens
  int64_t best = 100;             // maximum number of translations of a token to keep
  int64_t rounds = 5;             // of expectation maximisation
};

// Learns IBM Model 1 (Brown et al., "The mathematics of statistical machine translation", 1993): each target token of a
// sentence translates one token of the source, or none, and all of these are equally likely before the tokens are seen.
// Keeps the `best` most likely translations of each source token.
Lexicon LearnLexicon(absl::Span<const SentencePair> pairs, const LearnLexiconOptions& options);

}  // namespace weft

#endif  // WEFT_TEXT_LEXICON_LEARN_LEXICON_H_
