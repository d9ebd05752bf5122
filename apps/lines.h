// The lines of a command's input: of the files that its command line names, also as gzip has them, or, if there are
// none, of standard input.
#ifndef WEFT_APPS_LINES_H_
#define WEFT_APPS_LINES_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

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

// "[0.25,-1e-05]"
std::string JsonArray(absl::Span<const float> numbers);

}  // namespace weft

#endif  // WEFT_APPS_LINES_H_
