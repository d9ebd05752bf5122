// These functions read the lines of a command's input. The input is the files that the command line names, which may be
// gzip-compressed, or else standard input.
//
//   AddFiles(app, &flags->files);
//   return ForEachLine(flags.files, [](absl::string_view line) { ... });
#ifndef WEFT_APPS_LINES_H_
#define WEFT_APPS_LINES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace CLI {
class App;
}

namespace weft {

// Lets the command line name files.
void AddFiles(CLI::App* app, std::vector<std::string>* files);

// Calls `line` for each line, without its line break "\n" or "\r\n", until a call fails. The error then begins with
// "FILE, line 7: ". For a file it is a usage error, because the command line names the file. After each line of
// standard input, standard output is flushed, so that another program can wait for each answer.
absl::Status ForEachLine(const std::vector<std::string>& files,
                         const std::function<absl::Status(absl::string_view)>& line);

struct Line {
  std::string text, place;  // `place`: "FILE, line 7", with which errors begin
};
// Calls `batch` with at most `max_lines` lines of one file at a time. From standard input, a batch takes at least one
// line, and further complete lines that can be read without waiting.
absl::Status ForEachBatch(const std::vector<std::string>& files, size_t max_lines,
                          const std::function<absl::Status(absl::Span<const Line>)>& batch);

// A command that groups lines of similar lengths reads 8 batches at once: enough lines to fill its groups.
inline constexpr size_t kBatchesAtOnce = 8;

using TokenIds = std::vector<int32_t>;
// Encodes lines until one fails, and calls `answer` with the ids of all lines before it. Then returns the error of the
// failed line, which names its place. An error of `answer` is a failure (exit code 1), not a usage error.
absl::Status AnswerLines(absl::Span<const Line> lines,
                         const std::function<absl::StatusOr<TokenIds>(absl::string_view line)>& encode,
                         const std::function<absl::Status(absl::Span<const TokenIds>)>& answer);

// Returns "[0.25,-1e-05]", with 7 significant digits.
std::string JsonArray(absl::Span<const float> numbers);

}  // namespace weft

#endif  // WEFT_APPS_LINES_H_
