// Files are read whole. A line of standard input is waited for only after the answers to earlier lines are flushed.
#include "weft/apps/lines.h"

#include <cstdio>

#include "weft/apps/flags.h"
#include "weft/base/status.h"

namespace weft {

bool ReadsStandardInput(const std::vector<std::string>& files) {
  return files.empty() || (files.size() == 1 && files[0] == kStandardInput);
}

absl::Status InputError(const absl::Status& status, const std::vector<std::string>& files) {
  return ReadsStandardInput(files) ? Failure(status) : UsageError(status);
}

absl::Status ForEachLine(const std::vector<std::string>& files,
                         const std::function<absl::Status(absl::string_view)>& line) {
  LineReader reader(files);
  while (true) {
    const absl::StatusOr<TextLines> next = reader.Next(/*max_lines=*/1);
    if (!next.ok()) return InputError(next.status(), files);
    if (next->lines.empty()) return absl::OkStatus();
    WEFT_RETURN_IF_ERROR(InputError(Annotate(line(next->lines[0]), next->Location(0)), files));
    if (ReadsStandardInput(files)) std::fflush(stdout);
  }
}

absl::Status AnswerLines(const std::vector<std::string>& files, size_t max_lines,
                         const std::function<absl::StatusOr<TokenIds>(absl::string_view line)>& encode,
                         const std::function<absl::Status(const TextLines&, absl::Span<const TokenIds>)>& answer) {
  const auto take = [&](const TextLines& lines, absl::Span<const TokenIds> ids) -> absl::Status {
    WEFT_RETURN_IF_ERROR(Failure(answer(lines, ids)));
    if (ReadsStandardInput(files)) std::fflush(stdout);
    return absl::OkStatus();
  };
  return InputError(EncodeLines(files, max_lines, encode, take), files);
}

}  // namespace weft
