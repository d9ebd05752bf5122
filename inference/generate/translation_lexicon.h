// A translation model's lexicon (text/lexicon/lexicon.h) lists which of its target tokens translate which source token.
//
//   WEFT_ASSIGN_OR_RETURN(const OpenedTransformer model, OpenTransformer("runs/translate-1"));
//   WEFT_RETURN_IF_ERROR(LearnModelLexicon(model, {"train.de", "train.en"}, "lexicon.txt").status());
//   WEFT_ASSIGN_OR_RETURN(const Lexicon lexicon, ReadModelLexicon(model, "lexicon.txt"));
#ifndef WEFT_INFERENCE_GENERATE_TRANSLATION_LEXICON_H_
#define WEFT_INFERENCE_GENERATE_TRANSLATION_LEXICON_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "weft/base/file.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/text/lexicon/lexicon.h"

namespace weft {

// Reads a lexicon whose tokens are spelt as in the model's vocabularies. Errors are those of ReadLexicon and
// TokenTexts, and InvalidArgument if the tokenizer's file does not spell all of its tokens.
absl::StatusOr<Lexicon> ReadModelLexicon(const OpenedTransformer& model, const std::string& path);

// Longer sentences would need much memory and tell little, because each of their tokens could translate each other one.
inline constexpr size_t kMaxLexiconTokens = 256;

struct LexiconTexts {
  std::string source, target;      // files with a sentence a line, and its translation on the same line of the other
  int64_t max_translations = 100;  // maximum number of translations of a token to keep
};
struct LearntLexicon {
  int64_t pairs = 0;         // pairs of sentences from which the lexicon was learnt
  int64_t left_out = 0;      // pairs with no tokens, or more than kMaxLexiconTokens, on a side
  int64_t translations = 0;  // in the lexicon
};
// Learns a lexicon with the model's tokenizers (LearnLexicon) and writes it to `path`. Returns AlreadyExists, before
// any work, if `path` is there and `if_there` is kFail. Returns InvalidArgument if `path` is one of the texts, a file
// in the model's folder, or not a regular file. Also returns InvalidArgument if no pair is left. Other errors are those
// of ReadParallelText and WriteLexicon, and those of a line that can't be encoded.
absl::StatusOr<LearntLexicon> LearnModelLexicon(const OpenedTransformer& model, const LexiconTexts& texts,
                                                const std::string& path, IfThere if_there);

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_TRANSLATION_LEXICON_H_
