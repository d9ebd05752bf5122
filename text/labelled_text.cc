#include "weft/text/labelled_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/core/status.h"
#include "weft/text/corpus.h"

namespace weft {
namespace {

absl::Status Bad(const TextLines& text, size_t index, absl::string_view what) {
  return InvalidArgument(text.Location(index), ": ", what);
}

}  // namespace

absl::StatusOr<LabelledText> ReadLabelledText(const std::string& path) {
  LabelledText result = {.text = {.path = path}};
  WEFT_ASSIGN_OR_RETURN(result.text.lines, ReadLines(path));
  for (size_t i = 0; i < result.text.lines.size(); ++i) {
    std::string& line = result.text.lines[i];
    const size_t tab = line.rfind('\t');
    if (tab == std::string::npos) return Bad(result.text, i, "there is no tab, after which the label would stand");
    result.labels.push_back(line.substr(tab + 1));
    line.resize(tab);
    if (line.empty()) return Bad(result.text, i, "there is no text before the tab");
    if (result.labels.back().empty()) return Bad(result.text, i, "there is no label after the tab");
  }
  return result;
}

std::vector<std::string> LabelNames(const LabelledText& text) {
  const std::set<std::string> different(text.labels.begin(), text.labels.end());
  std::vector<std::string> names(different.begin(), different.end());
  std::vector<std::pair<int64_t, std::string>> numbers;
  for (const std::string& name : names) {
    int64_t number;
    if (!absl::SimpleAtoi(name, &number)) return names;
    numbers.emplace_back(number, name);
  }
  std::sort(numbers.begin(), numbers.end());
  for (size_t i = 0; i < names.size(); ++i) names[i] = numbers[i].second;
  return names;
}

absl::StatusOr<std::vector<int32_t>> LabelIds(const LabelledText& text, absl::Span<const std::string> names) {
  absl::flat_hash_map<std::string, int32_t> ids;
  for (const std::string& name : names) ids.emplace(name, static_cast<int32_t>(ids.size()));
  std::vector<int32_t> result;
  for (size_t i = 0; i < text.labels.size(); ++i) {
    const auto found = ids.find(text.labels[i]);
    if (found == ids.end()) {
      return Bad(text.text, i,
                 absl::StrCat("the label '", text.labels[i], "' is none of the ", names.size(), ": ",
                              absl::StrJoin(names.subspan(0, 20), ", "), names.size() > 20 ? ", ..." : ""));
    }
    result.push_back(found->second);
  }
  return result;
}

}  // namespace weft
