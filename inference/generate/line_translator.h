// A LineTranslator translates lines of text with an encoder-decoder Transformer and its tokenizers.
//
//   WEFT_ASSIGN_OR_RETURN(OpenedTransformer opened, OpenTransformer(path));
//   const LineTranslatorOptions options = {.translate = opened.translate};
//   WEFT_ASSIGN_OR_RETURN(const auto translator, LineTranslator::Create(path, std::move(opened), options));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, translator->Encode("ein Haus"));
//   WEFT_ASSIGN_OR_RETURN(const auto translations, translator->Translate({ids}));
//   translator->Text(translations[0][0])   // "a house"
#ifndef WEFT_INFERENCE_GENERATE_LINE_TRANSLATOR_H_
#define WEFT_INFERENCE_GENERATE_LINE_TRANSLATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/generate/translate.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/text/lexicon/lexicon.h"

namespace weft {

struct LineTranslatorOptions {
  TranslateOptions translate;  // usually OpenedTransformer::translate, with changes
  bool truncate = false;       // true: cuts lines that exceed the context; false: they are errors
  RuntimeOptions runtime = {};
  // The file of a lexicon (inference/generate/translation_lexicon.h); empty: none. With it, a line's translations have
  // only tokens that translate one of the line's tokens or the NULL word. Each of these gives its
  // `shortlist_translations` most likely translations. If both sides have one vocabulary, translations may also have
  // the line's own tokens.
  std::string shortlist;
  int64_t shortlist_translations = 100;
};

class LineTranslator {
 public:
  // `path`: where `opened` comes from, for errors. Returns InvalidArgument if the options do not fit the model.
  static absl::StatusOr<std::unique_ptr<LineTranslator>> Create(const std::string& path, OpenedTransformer opened,
                                                                const LineTranslatorOptions& options);

  // Returns the tokens of a line, with the special tokens around a source. A line without tokens, such as an
  // empty line, gives no tokens. Unless `truncate` is set, a line that exceeds the context is InvalidArgument.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view line) const;
  // Returns up to `n_best` translations of each source, best first. A source without tokens has one empty translation.
  absl::StatusOr<std::vector<std::vector<Hypothesis>>> Translate(absl::Span<const std::vector<int32_t>> sources);
  // Returns the best translation of each source as a line of text.
  absl::StatusOr<std::vector<std::string>> TranslateToText(absl::Span<const std::vector<int32_t>> sources);
  // Returns the text of a translation as one line, in which line breaks and tabs are spaces.
  absl::StatusOr<std::string> Text(const Hypothesis& translation) const;

 private:
  LineTranslator(const LineTranslatorOptions& options, OpenedTransformer opened);

  LineTranslatorOptions options_;
  const OpenedTransformer opened_;
  std::optional<Lexicon> lexicon_;
  Parameters parameters_{{.draw = false}};
  std::unique_ptr<Translator> translator_;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_LINE_TRANSLATOR_H_
