#include "weft/core/status.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/edit_distance.h"

namespace weft {
void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

absl::Status ShapeError(absl::string_view op, absl::string_view message, TypeSpan inputs) {
  return InvalidArgument(op, ": ", message, "; inputs ", ToString(inputs));
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

std::string DidYouMean(absl::string_view word, absl::Span<const std::string> known) {
  constexpr size_t kMaxWord = 200;  // bytes: the table of distances grows with the square
  if (word.size() > kMaxWord) return "";
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    // A prefix counts as one edit.
    const bool begins = word.size() >= 3 && absl::StartsWith(candidate, word);
    if (candidate.size() > kMaxWord) continue;
    const size_t distance = begins ? 1 : EditDistance(word, candidate);
    if (distance >= best_distance) continue;
    best = &candidate;
    best_distance = distance;
  }
  return best == nullptr ? "" : absl::StrCat(", did you mean '", *best, "'?");
}

}  // namespace weft
