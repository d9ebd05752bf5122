// LineCounts are what a measure of translations counts in each line, such as matching n-grams. The measure computes the
// score of any set of lines from the sums of their counts, so that other sets need no new counting.
//
//   WEFT_ASSIGN_OR_RETURN(const LineCounts counts, BleuCounts(translations, references));
//   const BleuScore bleu = BleuOf(Sum(counts));
#ifndef WEFT_TEXT_MEASURES_LINE_COUNTS_H_
#define WEFT_TEXT_MEASURES_LINE_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "weft/base/status.h"

namespace weft {

using LineCounts = std::vector<std::vector<int64_t>>;  // a row of counts for each line; rows are of equal length

// One or more reference translations of each line: references[r][i] is reference `r` of line `i`.
using References = absl::Span<const std::vector<std::string>>;

// Returns InvalidArgument if there is no reference, or if the numbers of lines differ.
inline absl::Status CheckReferences(size_t translations, References references) {
  if (references.empty()) return InvalidArgument("there are no references");
  for (const std::vector<std::string>& lines : references) {
    if (lines.size() == translations) continue;
    return InvalidArgument("there are ", translations, " translations, but ", lines.size(), " references");
  }
  return absl::OkStatus();
}

// Returns the sums over all lines, which are no counts if there are no lines.
inline std::vector<int64_t> Sum(const LineCounts& counts) {
  std::vector<int64_t> sums(counts.empty() ? 0 : counts[0].size(), 0);
  for (const std::vector<int64_t>& line : counts) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += line[i];
  }
  return sums;
}

}  // namespace weft

#endif  // WEFT_TEXT_MEASURES_LINE_COUNTS_H_
