// One checksum of all parameters is compared first. The ranks exchange a checksum of each parameter only if it differs.
#include "weft/train/run/same_parameters.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "weft/core/checksum.h"
#include "weft/distributed/piece_name.h"

namespace weft {
namespace {

// Returns a line "NAME CHECKSUM" for each parameter. Leaves out pieces, because only one rank has them.
std::string ChecksumLines(const Parameters& parameters) {
  std::string lines;
  for (const std::string& name : parameters.Names(Parameters::kAll)) {
    const absl::StatusOr<Tensor> tensor = parameters.Find(name);
    if (!tensor.ok() || ParsePiece(name)) continue;
    const absl::string_view bytes(reinterpret_cast<const char*>(tensor->data), tensor->type.bytes());
    absl::StrAppend(&lines, name, " ", Checksum(bytes), "\n");
  }
  return lines;
}

// Returns the text that more than half of `texts` have, or nullptr if there is none.
const std::string* Majority(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (absl::c_count(texts, text) * 2 > static_cast<int64_t>(texts.size())) return &text;
  }
  return nullptr;
}

// Returns "rank 1", "ranks 0 and 1", "ranks 0, 2 and 3".
std::string ListRanks(std::vector<int> ranks) {
  const int last = ranks.back();
  ranks.pop_back();
  if (ranks.empty()) return absl::StrCat("rank ", last);
  return absl::StrCat("ranks ", absl::StrJoin(ranks, ", "), " and ", last);
}

// Compares the texts line by line, and returns the name in the first line that is not the same in all of them.
std::string FirstDifference(const std::vector<std::string>& texts) {
  std::vector<std::vector<absl::string_view>> lines;
  size_t most = 0;
  for (const std::string& text : texts) {
    lines.push_back(absl::StrSplit(text, '\n', absl::SkipEmpty()));
    most = std::max(most, lines.back().size());
  }
  for (size_t i = 0; i < most; ++i) {
    const auto line = [&](const std::vector<absl::string_view>& of) { return i < of.size() ? of[i] : ""; };
    const bool same = absl::c_all_of(lines, [&](const auto& of) { return line(of) == line(lines[0]); });
    if (same) continue;
    const auto longest = absl::c_find_if(lines, [&](const auto& of) { return i < of.size(); });
    return std::string(line(*longest).substr(0, line(*longest).rfind(' ')));
  }
  return "";
}

}  // namespace

absl::Status CheckSameParameters(const Ranks& ranks, const Parameters& parameters, int64_t step) {
  if (ranks.size() == 1) return absl::OkStatus();
  const std::string mine = ChecksumLines(parameters);
  const std::vector<std::string> checksums = ranks.AllGather(Checksum(mine));
  if (absl::c_all_of(checksums, [&](const std::string& each) { return each == checksums[0]; })) {
    return absl::OkStatus();
  }
  const std::vector<std::string> lines = ranks.AllGather(mine);
  const std::string* const majority = Majority(lines);
  std::vector<int> other;
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    if (majority == nullptr || lines[rank] != *majority) other.push_back(static_cast<int>(rank));
  }
  const std::string differ = majority == nullptr ? " differ from each other"
                             : other.size() == 1 ? " differs"
                                                 : " differ";
  return absl::DataLossError(absl::StrCat(
      "after step ", step, " ", ListRanks(other), differ, majority == nullptr ? "" : " from the other ranks", " in '",
      FirstDifference(lines), "': all ranks must have the same weights and optimizer state"));
}

}  // namespace weft
