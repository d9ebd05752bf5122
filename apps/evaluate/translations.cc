// The part of `weft evaluate` for translations, of a model or finished: BLEU, chrF and chrF++, and their differences
// from a baseline's.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "weft/apps/evaluate/figures.h"
#include "weft/apps/flags.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/inference/generate/line_translator.h"
#include "weft/text/data/lines.h"
#include "weft/text/data/sentence_pairs.h"
#include "weft/text/measures/ngrams.h"
#include "weft/text/measures/translation_measures.h"

namespace weft {
namespace {

using Lines = std::vector<std::string>;

struct TranslationFiles {
  TextLines source;               // the source or, without a model, the finished translations
  std::vector<Lines> references;  // of each file
};

absl::StatusOr<TranslationFiles> ReadFiles(const std::string& source, const std::string& references) {
  TranslationFiles files;
  const std::vector<std::string> paths =
      Exists(references) ? std::vector<std::string>{references} : absl::StrSplit(references, ',');
  for (const std::string& path : paths) {
    if (files.references.empty()) {
      WEFT_ASSIGN_OR_RETURN(ParallelText text, ReadParallelText(source, path));
      files.source = std::move(text.source);
      files.references.push_back(std::move(text.target.lines));
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(Lines lines, ReadLinesLike(files.source, path));
    files.references.push_back(std::move(lines));
  }
  return files;
}

absl::StatusOr<Lines> Translate(const EvaluateFlags& flags, const std::string& model, const TextLines& source) {
  TranslationOptions translation = flags.translation;
  WEFT_ASSIGN_OR_RETURN(const auto translator, OpenTranslator(model, flags.given, &translation));
  const auto encode = [&](absl::string_view line) { return translator->Encode(line); };
  WEFT_ASSIGN_OR_RETURN(const std::vector<TokenIds> sources, UsageError(EncodeAll(source, encode)));
  return Failure(translator->TranslateToText(sources));
}

nlohmann::ordered_json Json(const BootstrapScore& score) {
  return {{"score", score.score}, {"mean", score.mean}, {"low", score.low}, {"high", score.high}};
}

// Returns the comparison of one measure as JSON, and appends it to `text` as a line.
nlohmann::ordered_json Describe(const TranslationMeasure& measure, const BootstrapComparison& compared,
                                std::string* text) {
  absl::StrAppendFormat(text, "%-14s %8.2f %8.2f   %+.2f [%+.2f, %+.2f]   p = %.4f\n", measure.name,
                        compared.system.score, compared.baseline.score, compared.difference.score,
                        compared.difference.low, compared.difference.high, compared.p_value);
  return {{"system", Json(compared.system)},
          {"baseline", Json(compared.baseline)},
          {"difference", Json(compared.difference)},
          {"p_value", compared.p_value}};
}

absl::StatusOr<Figures> MeasureLines(const EvaluateFlags& flags, absl::Span<const std::string> translations,
                                     References references, const Lines* baseline) {
  Figures figures = {Count("lines", static_cast<int64_t>(translations.size()))}, signatures;
  nlohmann::ordered_json comparison = {{"resamples", flags.resamples}, {"seed", flags.seed}};
  std::string table;
  for (const TranslationMeasure& measure : TranslationMeasures()) {
    WEFT_ASSIGN_OR_RETURN(const LineCounts counts, measure.count(translations, references, flags.lowercase));
    const std::vector<int64_t> sums = Sum(counts);
    const std::string signature = measure.signature(flags.lowercase, references.size());
    const bool is_bleu = measure.key == absl::string_view("bleu");
    signatures.push_back({measure.signature_key, signature, signature, "signature"});
    if (is_bleu) {
      const BleuScore bleu = BleuOf(sums);
      figures.push_back({measure.key, bleu.score, bleu.ToString().substr(std::string("BLEU = ").size())});
      figures.push_back({"precisions", bleu.precisions, ""});
      figures.push_back({"brevity_penalty", bleu.brevity_penalty, ""});
      figures.push_back({"translation_length", bleu.translation_length, ""});
      figures.push_back({"reference_length", bleu.reference_length, ""});
    } else {
      const double score = measure.score(sums);
      figures.push_back({measure.key, score, absl::StrFormat("%.2f", score), measure.name});
    }
    if (baseline == nullptr) continue;
    WEFT_ASSIGN_OR_RETURN(const LineCounts others, measure.count(*baseline, references, flags.lowercase));
    const BootstrapComparison compared =
        PairedBootstrap(counts, others, measure.score, {.resamples = flags.resamples, .seed = flags.seed});
    comparison[measure.key] = Describe(measure, compared, &table);
  }
  for (Figure& signature : signatures) figures.push_back(std::move(signature));
  if (baseline == nullptr) return figures;
  figures.push_back({"comparison", std::move(comparison), ""});
  figures.push_back({"", nullptr,
                     absl::StrFormat("\n%-14s %8s %8s   difference [95 %% of %d resamples]\n%s", "", "system",
                                     "baseline", flags.resamples, table)});
  return figures;
}

}  // namespace

absl::StatusOr<Figures> MeasureTranslations(const EvaluateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const TranslationFiles files, UsageError(ReadFiles(flags.translations, flags.references)));
  if (flags.baseline.empty()) return MeasureLines(flags, files.source.lines, files.references, nullptr);
  WEFT_ASSIGN_OR_RETURN(const Lines baseline, UsageError(ReadLinesLike(files.source, flags.baseline)));
  return MeasureLines(flags, files.source.lines, files.references, &baseline);
}

absl::StatusOr<Figures> MeasureTransformer(const EvaluateFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const TranslationFiles files, UsageError(ReadFiles(flags.source, flags.references)));
  Lines baseline;
  const bool is_file = Exists(flags.baseline) && !IsFolder(flags.baseline);
  if (is_file) {
    WEFT_ASSIGN_OR_RETURN(baseline, UsageError(ReadLinesLike(files.source, flags.baseline)));
  } else if (!flags.baseline.empty()) {
    WEFT_ASSIGN_OR_RETURN(baseline, Translate(flags, flags.baseline, files.source));
  }
  WEFT_ASSIGN_OR_RETURN(const Lines lines, Translate(flags, flags.model, files.source));
  return MeasureLines(flags, lines, files.references, flags.baseline.empty() ? nullptr : &baseline);
}

}  // namespace weft
