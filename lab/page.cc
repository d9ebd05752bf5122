#include "weft/lab/page.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "weft/text/utf8.h"

namespace weft {

std::string FillPage(absl::string_view page, absl::string_view json) {
  return absl::StrReplaceAll(page, {{"/*DATA*/", absl::StrReplaceAll(json, {{"<", "\\u003c"}})}});
}

std::string Shortened(absl::string_view text, size_t max_bytes, absl::string_view mark) {
  if (text.size() <= max_bytes) return std::string(text);
  return absl::StrCat(text.substr(0, CharacterBegin(text, max_bytes)), mark);
}

std::string WrapWords(const std::vector<absl::string_view>& words, size_t column, size_t indent) {
  std::string lines;
  bool begins = true;
  for (const absl::string_view word : words) {
    const size_t width = CountCharacters(word);
    if (!begins && column + 1 + width > kTextColumns) {
      absl::StrAppend(&lines, "\n", std::string(indent, ' '));
      column = indent;
      begins = true;
    }
    absl::StrAppend(&lines, begins ? "" : " ", word);
    column += width + (begins ? 0 : 1);
    begins = false;
  }
  return lines;
}

Curve RunningMean(const Curve& curve, size_t window) {
  Curve means;
  means.reserve(curve.size());
  // Each window is divided into blocks of `window` points at fixed places: the end of one and the beginning of the
  // next. Their sums are added up anew for each block, so no rounding error outlives a window.
  std::vector<double> ends(window + 1, 0);  // ends[i]: the sum of the block before, from its point i on
  double beginning = 0;
  for (size_t i = 0; i < curve.size(); ++i) {
    const size_t at = i % window;
    if (at == 0) {
      double sum = 0;
      for (size_t j = window; i > 0 && j-- > 0;) ends[j] = sum += curve[i - window + j].value;
      beginning = 0;
    }
    beginning += curve[i].value;
    means.push_back({curve[i].step, (ends[at + 1] + beginning) / static_cast<double>(std::min(i + 1, window))});
  }
  return means;
}

Curve Thin(const Curve& curve, size_t limit) {
  if (curve.size() <= limit) return curve;
  const size_t intervals = (limit - 2) / 2, inner = curve.size() - 2;
  Curve thin = {curve.front()};
  const auto less = [](const Point& a, const Point& b) { return a.value < b.value; };
  for (size_t i = 0; i < intervals; ++i) {
    const auto begin = curve.begin() + static_cast<ptrdiff_t>(1 + inner * i / intervals);
    const auto end = curve.begin() + static_cast<ptrdiff_t>(1 + inner * (i + 1) / intervals);
    const auto [low, high] = std::minmax_element(begin, end, less);
    thin.push_back(*std::min(low, high));
    if (low != high) thin.push_back(*std::max(low, high));
  }
  thin.push_back(curve.back());
  return thin;
}

}  // namespace weft
