#include "weft/base/status.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "weft/base/edit_distance.h"

namespace weft {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

std::string DidYouMean(absl::string_view word, absl::Span<const std::string> known) {
  const size_t nearest = NearestWord(word, known, std::max<size_t>(2, word.size() / 3));
  return nearest == known.size() ? "" : absl::StrCat(", did you mean '", known[nearest], "'?");
}

}  // namespace weft
