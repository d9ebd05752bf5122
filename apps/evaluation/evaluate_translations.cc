// BLEU of translations.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/evaluation/evaluate.h"
#include "weft/core/status.h"
#include "weft/inference/line_translator.h"
#include "weft/text/bleu.h"
#include "weft/text/sentence_pairs.h"

namespace weft {
namespace {

absl::StatusOr<Figures> Bleu(const EvaluateFlags& flags, absl::Span<const std::string> translations,
                             absl::Span<const std::string> references) {
  const BleuOptions options = {.lowercase = flags.lowercase};
  WEFT_ASSIGN_OR_RETURN(const BleuScore bleu, CorpusBleu(translations, references, options));
  const std::string signature = BleuSignature(options);
  return Figures{
      Count("lines", static_cast<int64_t>(translations.size())),
      {"bleu", bleu.score, bleu.ToString().substr(std::string("BLEU = ").size())},
      {"precisions", bleu.precisions, ""},
      {"brevity_penalty", bleu.brevity_penalty, ""},
      {"translation_length", bleu.translation_length, ""},
      {"reference_length", bleu.reference_length, ""},
      {"signature", signature, signature},
  };
}

}  // namespace

absl::StatusOr<Figures> EvaluateTranslations(const EvaluateFlags& flags) {
  const absl::StatusOr<ParallelText> text = ReadParallelText(flags.translations, flags.references);
  if (!text.ok()) return UsageError(text.status());
  return Bleu(flags, text->source.lines, text->target.lines);
}

absl::StatusOr<Figures> EvaluateTransformer(const EvaluateFlags& flags) {
  const absl::StatusOr<ParallelText> text = ReadParallelText(flags.source, flags.references);
  if (!text.ok()) return UsageError(text.status());
  const LineTranslatorOptions options = {
      .translate = {{.beam = flags.beam}}, .truncate = flags.truncate, .batch = flags.batch, .threads = flags.threads};
  const absl::StatusOr<std::unique_ptr<LineTranslator>> translator = LineTranslator::Open(flags.model, options);
  if (!translator.ok()) return UsageError(translator.status());
  std::vector<std::vector<int32_t>> sources;
  for (size_t i = 0; i < text->source.lines.size(); ++i) {
    absl::StatusOr<std::vector<int32_t>> ids = (*translator)->Encode(text->source.lines[i]);
    if (!ids.ok()) return Annotate(ids.status(), text->source.Place(i));
    sources.push_back(*std::move(ids));
  }
  const auto translations = (*translator)->Translate(sources);
  if (!translations.ok()) return Failure(translations.status());
  std::vector<std::string> lines;
  for (const std::vector<Hypothesis>& best : *translations) {
    absl::StatusOr<std::string> line = (*translator)->Text(best[0]);
    if (!line.ok()) return Failure(line.status());
    lines.push_back(*std::move(line));
  }
  return Bleu(flags, lines, text->target.lines);
}

}  // namespace weft
