#include "weft/base/status.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "absl/strings/match.h"

namespace weft {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

// Row i of the table of distances has those between the first i bytes of `a` and each beginning of `b`. A swap of
// neighbours refers to the row before the previous one, so three rows are kept.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({previous[j - 1] + (a[i - 1] != b[j - 1]), previous[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

size_t NearestWord(absl::string_view word, absl::Span<const std::string> known, size_t limit) {
  constexpr size_t kMaxWord = 200;  // bytes: the table of distances grows with the square
  size_t best = known.size(), end = limit + 1;
  for (size_t i = 0; i < known.size(); ++i) {
    if (std::max(word.size(), known[i].size()) > kMaxWord) continue;
    const bool begins = word.size() >= 3 && absl::StartsWith(known[i], word) && known[i] != word;
    const size_t distance = begins ? 1 : EditDistance(word, known[i]);
    if (distance >= end) continue;
    best = i;
    end = distance;
  }
  return best;
}

std::string DidYouMean(absl::string_view word, absl::Span<const std::string> known) {
  const size_t nearest = NearestWord(word, known, std::max<size_t>(2, word.size() / 3));
  return nearest == known.size() ? "" : absl::StrCat(", did you mean '", known[nearest], "'?");
}

}  // namespace weft
