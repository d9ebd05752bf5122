// These functions measure translations against one or more references: corpus BLEU (Papineni et al. 2002), chrF
// (Popović 2015) and chrF++ (Popović 2017), equal to sacreBLEU 2.6's. PairedBootstrap compares two systems.
//
//   WEFT_ASSIGN_OR_RETURN(const BleuScore bleu, CorpusBleu(translations, references));
//   bleu.ToString()   // "BLEU = 36.51 68.0/43.2/29.6/20.7 (BP = 0.998 ratio = 0.998 hyp_len = ... ref_len = ...)"
//   for (const TranslationMeasure& measure : TranslationMeasures()) {
//     WEFT_ASSIGN_OR_RETURN(const LineCounts counts, measure.count(translations, references, /*lowercase=*/false));
//     std::printf("%s %.2f\n", measure.name, measure.score(Sum(counts)));
//   }
#ifndef WEFT_TEXT_MEASURES_TRANSLATION_MEASURES_H_
#define WEFT_TEXT_MEASURES_TRANSLATION_MEASURES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/text/measures/ngrams.h"

namespace weft {

// BLEU splits lines into words as the script mteval-v13a does. Precisions are smoothed exponentially (Chen and Cherry
// 2014, method 3): the first n-gram order without a match counts as half a match, the next as a quarter, and so on. If
// no word matches, or no translation has four words, the score is 0. With several references, an n-gram matches as
// often as it occurs in the reference that has most of it, and the reference's length is the nearest one, or the
// shorter of two.
struct BleuScore {
  double score = 0;                                      // 0 .. 100
  std::array<double, 4> precisions = {};                 // of n-grams of 1 to 4 words, in percent
  std::array<int64_t, 4> matches = {}, totals = {};      // n-grams found in the reference, and all n-grams
  double brevity_penalty = 0;                            // 1 if the translations are at least as long as the references
  int64_t translation_length = 0, reference_length = 0;  // words

  std::string ToString() const;
};

// Ignores case if `lowercase` is set. Returns InvalidArgument if the numbers of translations and references differ.
absl::StatusOr<BleuScore> CorpusBleu(absl::Span<const std::string> translations,
                                     absl::Span<const std::string> references, bool lowercase = false);

// Returns for each line its words, the words of its reference, its matches and its n-grams of 1 to 4 words. Returns
// InvalidArgument if CheckReferences does.
absl::StatusOr<LineCounts> BleuCounts(absl::Span<const std::string> translations, References references,
                                      bool lowercase = false);
// Returns the score of sums of such counts. Empty sums are those of no lines.
BleuScore BleuOf(absl::Span<const int64_t> sums);

// Returns sacreBLEU's signature of the settings, which papers quote. The default settings give
// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0".
std::string BleuSignature(bool lowercase = false, size_t references = 1);

// Splits a line into words as mteval-v13a does, and joins them with spaces.
std::string TokenizeForBleu(absl::string_view line);

// chrF is the F-measure, with recall counting twice, of the mean precision and the mean recall of n-grams. The n-grams
// are those of 1 to 6 characters, without white space, and of 1 to `words` words. A mean leaves out n-grams that one
// side has none of. With several references, each line counts against the reference that gives it the best score. If
// `words` is 0, it is chrF; if it is 2, chrF++.

// Returns for each line and each length of n-grams their numbers in the translation and in the reference, and the
// number of matches. Returns InvalidArgument if CheckReferences does.
template <size_t words = 0>
absl::StatusOr<LineCounts> ChrfCounts(absl::Span<const std::string> translations, References references,
                                      bool lowercase = false);
// Returns the score, 0 .. 100, of sums of such counts. Empty sums are those of no lines.
double ChrfOf(absl::Span<const int64_t> sums);
// Returns sacreBLEU's signature of the settings. The default ones give
// "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0".
template <size_t words = 0>
std::string ChrfSignature(bool lowercase = false, size_t references = 1);

// The measures BLEU, chrF and chrF++. A new measure is a row.
struct TranslationMeasure {
  const char* name;           // "chrf++"
  const char* key;            // in JSON: "chrf_plus_plus"
  const char* signature_key;  // in JSON: "chrf_plus_plus_signature"
  absl::StatusOr<LineCounts> (*count)(absl::Span<const std::string> translations, References references,
                                      bool lowercase);
  double (*score)(absl::Span<const int64_t> sums);  // 0 .. 100
  std::string (*signature)(bool lowercase, size_t references);
};
absl::Span<const TranslationMeasure> TranslationMeasures();

// The score of the text, and the scores of its resamples.
struct BootstrapScore {
  double score = 0;          // of the lines as they are
  double mean = 0;           // over the resamples
  double low = 0, high = 0;  // the 2.5th and the 97.5th percentile of the resamples
};

struct BootstrapComparison {
  BootstrapScore system, baseline;
  BootstrapScore difference;  // system minus baseline
  // The probability of a difference at least this large if the systems were equally good: the fraction of resamples
  // whose absolute difference exceeds the mean absolute difference by more than |difference.score|. The fraction counts
  // one resample more, so it is never 0. If no resample has a difference, it is 1.
  double p_value = 1;
};

struct BootstrapOptions {
  int64_t resamples = 1000;  // at least 1
  uint64_t seed = 1;         // chooses the resamples: equal seeds and counts give equal results
};

// PairedBootstrap tells whether one system's translations are better than a baseline's, or whether the lines that were
// translated may explain the difference (Koehn 2004). The method is that of sacreBLEU's --paired-bs: a resample has as
// many lines as the text, drawn at random with replacement, the same lines of both systems. Needs only the lines'
// counts, so no text is read again.
//
//   WEFT_ASSIGN_OR_RETURN(const LineCounts system, ChrfCounts(translations, references));
//   WEFT_ASSIGN_OR_RETURN(const LineCounts baseline, ChrfCounts(other_translations, references));
//   const BootstrapComparison chrf = PairedBootstrap(system, baseline, ChrfOf, {.resamples = 1000, .seed = 1});
//   if (chrf.p_value < 0.05) ...
using CorpusScore = absl::FunctionRef<double(absl::Span<const int64_t> sums)>;
// Both systems have the same lines, at least one.
BootstrapComparison PairedBootstrap(const LineCounts& system, const LineCounts& baseline, CorpusScore score,
                                    const BootstrapOptions& options);

// The same with the caller's draws: draw(resample, i) is the index of the line at place `i` of a resample.
BootstrapComparison PairedBootstrap(const LineCounts& system, const LineCounts& baseline, CorpusScore score,
                                    int64_t resamples, absl::FunctionRef<size_t(size_t resample, size_t i)> draw);

}  // namespace weft

#endif  // WEFT_TEXT_MEASURES_TRANSLATION_MEASURES_H_
