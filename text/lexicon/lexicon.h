// A Lexicon lists the likely translations of each source token. The translations of all tokens of a sentence are its
// shortlist: a Translator that chooses among them computes far fewer logits than there are tokens.
//
//   const Lexicon lexicon = LearnLexicon(pairs, {.source_vocabulary = 8000});
//   lexicon.Shortlist(source, /*max_translations=*/100)   // the ids of target tokens, in ascending order
//
// Its file is that of Marian's lexical shortlists. Each line is "TARGET SOURCE PROBABILITY", where SOURCE and TARGET
// are texts of tokens as their vocabularies spell them, and PROBABILITY is that of TARGET, given SOURCE. The SOURCE
// "NULL" stands for no token, so its translations are tokens that any sentence may need.
#ifndef WEFT_TEXT_LEXICON_LEXICON_H_
#define WEFT_TEXT_LEXICON_LEXICON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/base/file.h"
#include "weft/text/data/sentence_pairs.h"

namespace weft {

struct Translation {
  int32_t target = 0;  // a token
  float probability = 0;
};

struct Lexicon {
  std::vector<std::vector<Translation>> translations;  // of each source token by id, most likely first
  std::vector<Translation> null_translations;          // of no source token, most likely first

  // Returns the `max_translations` most likely translations of each token of `source`, and of no token: distinct ids in
  // ascending order. A token that the lexicon does not know has no translations.
  std::vector<int32_t> Shortlist(absl::Span<const int32_t> source, int64_t max_translations) const;
};

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

// The texts of the tokens of both vocabularies by id, as from TokenTexts (formats/token_texts.h).
struct LexiconVocabularies {
  std::vector<std::string> source, target;
};

// Reads a file of this format. Lines may be in any order. As Marian does, leaves out lines with a token that its
// vocabulary does not have, and lines of the target "NULL". Returns InvalidArgument, with file and line, for a line of
// another format and for a probability that is not in 0 .. 1. Also returns InvalidArgument if no line is left, and for
// standard input, from which the text to translate may come.
absl::StatusOr<Lexicon> ReadLexicon(const std::string& path, const LexiconVocabularies& vocabularies);

// Writes such a file, and returns the number of its lines. Leaves out tokens that the format cannot express: their text
// is empty, has white space, or is "NULL". Returns AlreadyExists if the file is there and `if_there` is kFail.
absl::StatusOr<int64_t> WriteLexicon(const std::string& path, const Lexicon& lexicon,
                                     const LexiconVocabularies& vocabularies, IfThere if_there = IfThere::kReplace);

}  // namespace weft

#endif  // WEFT_TEXT_LEXICON_LEXICON_H_
