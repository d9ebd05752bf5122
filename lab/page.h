// FillPage makes pages that show data: self-contained HTML files with the data inside. Other functions make texts,
// lists and curves short enough to show.
//
//   std::fputs(FillPage(kGraphPage, json.dump()).c_str(), stdout);  // kGraphPage: weft_page of tools/weft.bzl
//
//   const Curve mean = RunningMean(losses, 25);
//   const Curve drawn = Thin(losses, 2000);   // keeps the minimum and the maximum of each interval of steps
#ifndef WEFT_LAB_PAGE_H_
#define WEFT_LAB_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

// Returns `page` with `json` in place of the text /*DATA*/, which must be inside a <script>. Each '<' of the data
// becomes \u003c, so that no string in the data can end the script.
std::string FillPage(absl::string_view page, absl::string_view json);

// Returns the first bytes of `text`, at most `max_bytes`, cut between characters. If any bytes are left out, `mark`
// follows.
std::string Shortened(absl::string_view text, size_t max_bytes, absl::string_view mark = "…");
inline constexpr size_t kTextColumns = 80;  // of a terminal
// Returns the words in lines of at most kTextColumns columns. Each line after the first begins with `indent` spaces.
// `column`: number of columns that are taken on the first line.
std::string WrapWords(const std::vector<absl::string_view>& words, size_t column, size_t indent);

// A Curve holds the values of one figure over the steps of a training run.
struct Point {
  int64_t step = 0;
  double value = 0;

  bool operator==(const Point&) const = default;
};
using Curve = std::vector<Point>;  // steps increase

// Returns the mean of each value and the up to `window` - 1 values before it. `window` >= 1.
Curve RunningMean(const Curve& curve, size_t window);

// Returns at most `limit` points of the curve: the first, the last, and the minimum and the maximum of each of equal
// intervals of the others. A curve of at most `limit` points stays unchanged. `limit` >= 4.
Curve Thin(const Curve& curve, size_t limit);

// Returns at most `limit` of `items`, such as the points of a curve, with equal numbers of items between them: the
// first, the last and others. `limit` >= 2.
template <class T>
std::vector<T> TakeEvenly(const std::vector<T>& items, size_t limit) {
  if (items.size() <= limit) return items;
  std::vector<T> taken;
  for (size_t i = 0; i < limit; ++i) taken.push_back(items[(items.size() - 1) * i / (limit - 1)]);
  return taken;
}

}  // namespace weft

#endif  // WEFT_LAB_PAGE_H_
