// A LineTranslator translates lines of text with an encoder-decoder Transformer and its tokenizers.
//
//   WEFT_ASSIGN_OR_RETURN(OpenedTransformer opened, OpenTransformer(path));
//   const LineTranslatorOptions options = {.search = opened.search};
//   WEFT_ASSIGN_OR_RETURN(const auto translator, LineTranslator::Create(std::move(opened), options));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, translator->Encode("ein Haus"));
//   WEFT_ASSIGN_OR_RETURN(const auto translations, translator->Translate({ids}));
//   translator->Text(translations[0][0])   // "a house"
//
// A lexicon (text/lexicon/lexicon.h) of the model lists which of its target tokens translate which source token. It
// makes translation faster:
//
//   WEFT_RETURN_IF_ERROR(LearnModelLexicon(opened, {"train.de", "train.en"}, "lexicon.txt", IfThere::kFail).status());
#ifndef WEFT_INFERENCE_GENERATE_LINE_TRANSLATOR_H_
#define WEFT_INFERENCE_GENERATE_LINE_TRANSLATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/file.h"
#include "weft/core/parameters.h"
#include "weft/inference/generate/translate.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/text/lexicon/lexicon.h"

namespace weft {

struct LineTranslatorOptions {
  BeamSearchOptions search;  // usually OpenedTransformer::search, with changes
  bool truncate = false;     // true: cuts lines that exceed the context; false: they are errors
  RuntimeOptions runtime = {};
  // The file of a lexicon; empty: none. With it, a line's translations have only tokens that translate one of the
  // line's tokens or the NULL word. Each of these gives its `shortlist_translations` most likely translations. If both
  // sides have one vocabulary, translations may also have the line's own tokens.
  std::string shortlist;
  int64_t shortlist_translations = 100;
};

// Returns the tokens of a line, with the special tokens around a source. A line without tokens, such as an empty line,
// gives no tokens. Unless `truncate` is set, a line that exceeds the context is InvalidArgument.
absl::StatusOr<std::vector<int32_t>> EncodeSource(const OpenedTransformer& model, absl::string_view line,
                                                  bool truncate);

class LineTranslator {
 public:
  // Returns InvalidArgument if the options do not fit the model, or if its tokenizer's file does not spell all tokens
  // of a lexicon.
  static absl::StatusOr<std::unique_ptr<LineTranslator>> Create(OpenedTransformer opened,
                                                                const LineTranslatorOptions& options);

  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view line) const {
    return EncodeSource(opened_, line, options_.truncate);
  }
  // Returns up to `n_best` translations of each source, best first. A source without tokens has one empty translation.
  absl::StatusOr<std::vector<std::vector<Hypothesis>>> Translate(absl::Span<const std::vector<int32_t>> sources) {
    return Translate(sources, options_.search);
  }
  // The same with other options of the search.
  absl::StatusOr<std::vector<std::vector<Hypothesis>>> Translate(absl::Span<const std::vector<int32_t>> sources,
                                                                 const BeamSearchOptions& search);
  // Returns the best translation of each source as a line of text.
  absl::StatusOr<std::vector<std::string>> TranslateToText(absl::Span<const std::vector<int32_t>> sources);
  int64_t context() const { return opened_.model.config.context; }
  // Returns the text of a translation as one line, in which line breaks and tabs are spaces.
  absl::StatusOr<std::string> Text(const Hypothesis& translation) const;

 private:
  LineTranslator(const LineTranslatorOptions& options, OpenedTransformer opened)
      : options_(options), opened_(std::move(opened)) {}

  LineTranslatorOptions options_;
  const OpenedTransformer opened_;
  std::optional<Lexicon> lexicon_;
  Parameters parameters_{{.draw = false}};
  std::unique_ptr<Translator> translator_;
};

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

#endif  // WEFT_INFERENCE_GENERATE_LINE_TRANSLATOR_H_
