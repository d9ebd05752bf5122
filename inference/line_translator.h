// Lines of text and their translations, by an encoder-decoder Transformer.
//
//   WEFT_ASSIGN_OR_RETURN(const auto translator, LineTranslator::Open("runs/translate-1", {}));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, translator->Encode("ein Haus"));
//   WEFT_ASSIGN_OR_RETURN(const auto translations, translator->Translate({ids}));
//   translator->Text(translations[0][0])   // "a house"
#ifndef WEFT_INFERENCE_LINE_TRANSLATOR_H_
#define WEFT_INFERENCE_LINE_TRANSLATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/open_model.h"
#include "weft/inference/translate.h"

namespace weft {

struct LineTranslatorOptions {
  TranslateOptions translate = {{.beam = 4}};
  bool truncate = false;  // lines longer than the context, which are errors else
  int64_t batch = 32, threads = 0;
};

class LineTranslator {
 public:
  // `path` is what OpenTransformer takes.
  static absl::StatusOr<std::unique_ptr<LineTranslator>> Open(const std::string& path,
                                                              const LineTranslatorOptions& options);

  // None for a line without tokens.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view line) const;
  // Of each source its n best, best first; a source without tokens has one, which is empty.
  absl::StatusOr<std::vector<std::vector<Hypothesis>>> Translate(absl::Span<const std::vector<int32_t>> sources);
  // One line, whose breaks and tabs are spaces.
  absl::StatusOr<std::string> Text(const Hypothesis& translation) const;

 private:
  LineTranslator(const LineTranslatorOptions& options, OpenedTransformer opened);

  LineTranslatorOptions options_;
  const OpenedTransformer opened_;
  Parameters parameters_{{.draw = false}};
  std::unique_ptr<Translator> translator_;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_LINE_TRANSLATOR_H_
