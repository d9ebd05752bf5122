// PairedBootstrap tells whether one system's translations are better than a baseline's, or whether the lines that were
// translated may explain the difference (Koehn 2004). The method is that of sacreBLEU's --paired-bs.
//
//   WEFT_ASSIGN_OR_RETURN(const LineCounts system, ChrfCounts(translations, references));
//   WEFT_ASSIGN_OR_RETURN(const LineCounts baseline, ChrfCounts(other_translations, references));
//   const BootstrapComparison chrf = PairedBootstrap(system, baseline, ChrfOf, {.resamples = 1000, .seed = 1});
//   if (chrf.p_value < 0.05) ...
//
// A resample has as many lines as the text, drawn at random with replacement, the same lines of both systems.
#ifndef WEFT_TEXT_MEASURES_PAIRED_BOOTSTRAP_H_
#define WEFT_TEXT_MEASURES_PAIRED_BOOTSTRAP_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "weft/text/measures/ngrams.h"

namespace weft {

// The score of the text, and the scores of its resamples.
struct BootstrapScore {
  double score = 0;          // of the lines as they are
  double mean = 0;           // over the resamples
  double low = 0, high = 0;  // bounds of 95 % of the resamples; 1/40 of them is below, and as many are above
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
  uint64_t seed = 1;         // the result depends on nothing else, except the counts
};

using CorpusScore = absl::FunctionRef<double(absl::Span<const int64_t> sums)>;
// Both systems have the same lines, at least one.
BootstrapComparison PairedBootstrap(const LineCounts& system, const LineCounts& baseline, CorpusScore score,
                                    const BootstrapOptions& options);

// The same with the caller's draws: draw(resample, i) is the index of the line at place `i` of a resample.
BootstrapComparison PairedBootstrap(const LineCounts& system, const LineCounts& baseline, CorpusScore score,
                                    int64_t resamples, absl::FunctionRef<size_t(size_t resample, size_t i)> draw);

}  // namespace weft

#endif  // WEFT_TEXT_MEASURES_PAIRED_BOOTSTRAP_H_
