// A rank's message is a letter for its flag, the number of its status code, a newline, and a text: the error's message,
// or the result.
#include "weft/train/run/agreement.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/core/status.h"

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
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    const Opinion opinion = Decode(messages[rank]);
    any = any || opinion.flag;
    if (rank > 0) same = same && opinion.status == Decode(messages[0]).status;
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

}  // namespace weft
