// A rank's message is a letter for its flag, the number of its status code, a newline, and a text: the error's message,
// or the result.
#include "weft/distributed/agreement.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "weft/base/checksum.h"
#include "weft/base/status.h"
#include "weft/distributed/piece_name.h"

namespace weft {
namespace {

struct Opinion {
  bool flag = false;
  absl::Status status;
  std::string result;  // empty if `status` is an error
};

std::string Encode(const Opinion& opinion) {
  const absl::string_view text = opinion.status.ok() ? absl::string_view(opinion.result) : opinion.status.message();
  return absl::StrCat(opinion.flag ? "y" : "n", static_cast<int>(opinion.status.code()), "\n", text);
}

Opinion Decode(absl::string_view message) {
  const size_t newline = message.find('\n');
  int code = 0;
  WEFT_CHECK(newline != message.npos && absl::SimpleAtoi(message.substr(1, newline - 1), &code));
  const absl::string_view text = message.substr(newline + 1);
  Opinion opinion = {.flag = message[0] == 'y', .status = absl::Status(static_cast<absl::StatusCode>(code), text)};
  if (opinion.status.ok()) opinion.result = std::string(text);
  return opinion;
}

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

// Returns the name in the first line that is not the same in all texts.
std::string FirstDifference(const std::vector<std::string>& texts) {
  const std::string* longest = texts.data();
  size_t same = longest->size();  // number of bytes with which all texts begin
  for (const std::string& text : texts) {
    same = std::min<size_t>(same, absl::c_mismatch(texts[0], text).first - texts[0].begin());
    if (text.size() > longest->size()) longest = &text;
  }
  const size_t before = same == 0 ? std::string::npos : longest->rfind('\n', same - 1);
  const std::string line = longest->substr(before + 1, longest->find('\n', same) - before - 1);
  return line.substr(0, line.rfind(' '));
}

}  // namespace

absl::StatusOr<std::string> ResultOfFirst(const Ranks& ranks, absl::FunctionRef<absl::StatusOr<std::string>()> work) {
  if (ranks.size() == 1) return work();
  std::string mine;
  if (ranks.first()) {
    absl::StatusOr<std::string> result = work();
    mine = Encode({.status = result.status(), .result = result.ok() ? *std::move(result) : ""});
  }
  Opinion first = Decode(ranks.AllGather(mine)[0]);
  if (!first.status.ok()) return first.status;
  return std::move(first.result);
}

absl::Status OnFirst(const Ranks& ranks, absl::FunctionRef<absl::Status()> work) {
  return ResultOfFirst(ranks,
                       [&]() -> absl::StatusOr<std::string> {
                         WEFT_RETURN_IF_ERROR(work());
                         return "";
                       })
      .status();
}

absl::StatusOr<bool> AnyRank(const Ranks& ranks, const absl::Status& status, bool flag) {
  if (ranks.size() == 1) {
    if (!status.ok()) return status;
    return flag;
  }
  const std::vector<std::string> messages = ranks.AllGather(Encode({.flag = flag, .status = status}));
  bool any = false, same = true;
  int failed = -1;  // the first rank with an error
  absl::Status error;
  const absl::Status first = Decode(messages[0]).status;
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    const Opinion opinion = Decode(messages[rank]);
    any = any || opinion.flag;
    same = same && opinion.status == first;
    if (failed >= 0 || opinion.status.ok()) continue;
    failed = static_cast<int>(rank);
    error = opinion.status;
  }
  if (failed < 0) return any;
  return same ? error : Annotate(error, absl::StrCat("rank ", failed));
}

absl::Status AllAgree(const Ranks& ranks, const absl::Status& status) { return AnyRank(ranks, status, false).status(); }

absl::Status PrintedByFirst(const Ranks& ranks, const absl::Status& status) {
  return ranks.first() ? status : absl::Status(status.code(), "");
}

// One checksum of all parameters is compared first. The ranks exchange a checksum of each parameter only if it differs.
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
