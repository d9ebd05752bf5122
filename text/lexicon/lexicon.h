// A Lexicon lists the likely translations of each source token. The translations of all tokens of a sentence are its
// shortlist: a Translator that chooses among them computes far fewer logits than there are tokens.
//
//   const Lexicon lexicon = LearnLexicon(pairs, {.source_vocabulary = 8000});   // text/lexicon/learn_lexicon.h
//   lexicon.Shortlist(source, /*max_translations=*/100)                 // the ids of target tokens, in ascending order
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

namespace weft {

struct Translation {
  int32_t target = 0;  // a token
  float probability = 0;
};
// Sorts by falling probability, and equal ones by id. Of several translations with the same token, keeps the most
// likely one. Keeps the first `max_translations`.
void SortAndCut(std::vector<Translation>* translations, int64_t max_translations);

struct Lexicon {
  std::vector<std::vector<Translation>> translations;  // of each source token by id, most likely first
  std::vector<Translation> null_translations;          // of no source token, most likely first

  // Returns the `max_translations` most likely translations of each token of `source`, and of no token: distinct ids in
  // ascending order. A token that the lexicon does not know has no translations.
  std::vector<int32_t> Shortlist(absl::Span<const int32_t> source, int64_t max_translations) const;
};

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
