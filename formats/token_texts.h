// These functions read the texts of a tokenizer's tokens as its file spells them, for programs that know tokens by
// text. They also convert the tokenizers of translation models.
//
//   WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> texts, TokenTexts("runs/translate-1"));   // texts[300]:
//   "Ġthe"
#ifndef WEFT_FORMATS_TOKEN_TEXTS_H_
#define WEFT_FORMATS_TOKEN_TEXTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/formats/weights.h"

namespace weft {

// Returns the text of each token by id. `path`: as for LoadTokenizer. Returns NotFound if there is no tokenizer.
// Returns InvalidArgument if its file does not spell its tokens: this function knows tokenizer.json, vocab.json,
// encoder.json, vocab.txt and SentencePiece's .model.
absl::StatusOr<std::vector<std::string>> TokenTexts(const std::string& path);

// Returns the names of the files in which CTranslate2 has the list of tokens of `side`, "source" or "target", in the
// order in which they are looked for. The last two are lists of both sides.
std::vector<std::string> TokenListNames(absl::string_view side);

// The ids of special tokens. As in this project's runs, sources have the end token unless a file says otherwise.
struct TranslationTokens {
  int32_t begin = 1, end = 2, padding = 0;
  bool source_begin = false, source_end = true;
  bool published = false;  // true: generation_config.json and the tokenizer's input format tell them
};

// Returns the special tokens of the model whose tokenizer is in `folder`: those of generation_config.json, of `names`
// or of the tokenizer, in this order. If there is none, returns the defaults. The tokenizer of a published model may be
// of a kind that LoadTokenizer can't read.
absl::StatusOr<TranslationTokens> ReadTranslationTokens(const std::string& folder,
                                                        const std::optional<TokenNames>& names);
// If the tokenizer in `folder` is a tokenizer.json of Hugging Face, writes tokenizer_config.json for AutoTokenizer, and
// changes the input format to "text, end token". `context`: maximum number of tokens of a text.
absl::Status WriteTranslationTokenizer(const std::string& folder, int64_t context, const TranslationTokens& tokens);

}  // namespace weft

#endif  // WEFT_FORMATS_TOKEN_TEXTS_H_
