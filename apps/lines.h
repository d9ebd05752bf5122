// The lines of a command's input: of the files that its command line names, also as gzip has them, or, if there are
// none, of standard input.
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

// Calls `line` for each line, without its line break, "\n" or "\r\n", and flushes standard output after each of
// standard input, so that another program can talk with this one. The first error ends it, with "FILE, line 7: " before
// its text; one in a file is a usage error, as the command line names the file.
absl::Status ForEachLine(const std::vector<std::string>& files,
                         const std::function<absl::Status(absl::string_view)>& line);

struct Line {
  std::string text, place;  // place: "FILE, line 7", which errors begin with
};
// The same with up to `most` lines of one file at a time; of standard input with as many whole lines as are there
// without waiting.
absl::Status ForEachBatch(const std::vector<std::string>& files, size_t most,
                          const std::function<absl::Status(absl::Span<const Line>)>& batch);

// So many batches are read at a time by commands that put lines of like lengths together.
inline constexpr size_t kBatchesAtOnce = 8;

using TokenIds = std::vector<int32_t>;
// Gives `answer` the ids of the lines before the first that `encode` can't use, and then returns what is wrong with
// that one, and its place. An error of `answer` is a failure at work.
absl::Status AnswerLines(absl::Span<const Line> lines,
                         const std::function<absl::StatusOr<TokenIds>(absl::string_view line)>& encode,
                         const std::function<absl::Status(absl::Span<const TokenIds>)>& answer);

// Makes room in a context for so many special tokens around `ids`: cuts them if that is asked for, and is
// InvalidArgument else.
absl::Status FitContext(size_t around, int64_t context, bool truncate, TokenIds* ids);

// "[0.25,-1e-05]"
std::string JsonArray(absl::Span<const float> numbers);

}  // namespace weft

#endif  // WEFT_APPS_LINES_H_
