#include "weft/inference/draft.h"

#include <algorithm>

namespace weft {

std::vector<int32_t> DraftByLookup(absl::Span<const int32_t> text, size_t count) {
  constexpr size_t kLongest = 3, kShortest = 2;
  for (size_t n = kLongest; n >= kShortest; --n) {
    if (text.size() <= n) continue;
    const absl::Span<const int32_t> last = text.last(n);
    for (size_t end = text.size() - 1; end >= n; --end) {
      if (text.subspan(end - n, n) != last) continue;
      const absl::Span<const int32_t> next = text.subspan(end, count);
      return {next.begin(), next.end()};
    }
  }
  return {};
}

}  // namespace weft
