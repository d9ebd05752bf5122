// Reads the lines of a command's input: of the files that its command line names, which gzip may have compressed, or
// else of standard input.
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

// Calls `line` for each line, without its line break "\n" or "\r\n", until one call fails. The error then begins with
// "FILE, line 7: "; for a file it is a usage error, because the command line names the file. After each line of
// standard input, standard output is flushed, so that another program can converse with this one.
absl::Status ForEachLine(const std::vector<std::string>& files,
                         const std::function<absl::Status(absl::string_view)>& line);

struct Line {
  std::string text, place;  // `place`: "FILE, line 7", with which errors begin
};
// Calls `batch` with up to `max_lines` lines of one file at a time. A batch of standard input has those complete lines
// that can be read without waiting, and at least one.
absl::Status ForEachBatch(const std::vector<std::string>& files, size_t max_lines,
                          const std::function<absl::Status(absl::Span<const Line>)>& batch);

// Number of batches that a command reads at once if it groups lines of similar lengths: enough to fill its groups.
inline constexpr size_t kBatchesAtOnce = 8;

using TokenIds = std::vector<int32_t>;
// Encodes lines until one fails, and calls `answer` with the ids of the lines before it. Then returns the error of the
// failed line, with its place. An error of `answer` is a failure (exit code 1), not a usage error.
absl::Status AnswerLines(absl::Span<const Line> lines,
                         const std::function<absl::StatusOr<TokenIds>(absl::string_view line)>& encode,
                         const std::function<absl::Status(absl::Span<const TokenIds>)>& answer);

// Returns "[0.25,-1e-05]", with 7 significant digits.
std::string JsonArray(absl::Span<const float> numbers);

}  // namespace weft

#endif  // WEFT_APPS_LINES_H_
