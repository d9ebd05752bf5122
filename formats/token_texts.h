// TokenTexts reads the texts of a tokenizer's tokens as its file spells them, for programs that know tokens by text.
//
//   WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> texts, TokenTexts("runs/translate-1"));   // texts[300]:
//   "Ġthe"
#ifndef WEFT_FORMATS_TOKEN_TEXTS_H_
#define WEFT_FORMATS_TOKEN_TEXTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Returns the text of each token by id. `path`: as for LoadTokenizer. Returns NotFound if there is no tokenizer.
// Returns InvalidArgument if its file does not spell its tokens: this function knows tokenizer.json, vocab.json,
// encoder.json, vocab.txt and SentencePiece's .model.
absl::StatusOr<std::vector<std::string>> TokenTexts(const std::string& path);

// Returns the names of the files in which CTranslate2 has the list of tokens of `side`, "source" or "target", in the
// order in which they are looked for. The last two are lists of both sides.
std::vector<std::string> TokenListNames(absl::string_view side);

}  // namespace weft

#endif  // WEFT_FORMATS_TOKEN_TEXTS_H_
