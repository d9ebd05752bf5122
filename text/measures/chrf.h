// CorpusChrf computes chrF (Popović 2015) and chrF++ (Popović 2017) of translations against one or more references,
// equal to sacreBLEU 2.6's.
//
//   WEFT_ASSIGN_OR_RETURN(const double chrf, CorpusChrf(translations, references));                     // 0 .. 100
//   WEFT_ASSIGN_OR_RETURN(const double chrf_plus_plus, CorpusChrf(translations, references, {.words = 2}));
//
// The score is the F-measure, with recall counting twice, of the mean precision and the mean recall of n-grams. The
// n-grams are those of 1 to 6 characters, without white space, and of 1 to `words` words. A mean leaves out n-grams
// that one side has none of. With several references, each line counts against the reference that gives it the best
// score.
#ifndef WEFT_TEXT_MEASURES_CHRF_H_
#define WEFT_TEXT_MEASURES_CHRF_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/text/measures/ngrams.h"

namespace weft {

struct ChrfOptions {
  size_t words = 0;  // longest n-gram of words; 2: chrF++
  bool lowercase = false;
};

// Returns InvalidArgument if CheckReferences does.
absl::StatusOr<double> CorpusChrf(absl::Span<const std::string> translations, References references,
                                  const ChrfOptions& options = {});

// Returns for each line and each length of n-grams their numbers in the translation and in the reference, and the
// number of matches. Returns InvalidArgument if CheckReferences does.
absl::StatusOr<LineCounts> ChrfCounts(absl::Span<const std::string> translations, References references,
                                      const ChrfOptions& options = {});
// Returns the score of sums of such counts. No counts are those of no lines.
double ChrfOf(absl::Span<const int64_t> sums);

// Returns sacreBLEU's signature of the settings. The default options give
// "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0".
std::string ChrfSignature(const ChrfOptions& options = {}, size_t references = 1);

}  // namespace weft

#endif  // WEFT_TEXT_MEASURES_CHRF_H_
