// These functions read the lines of a command's input, and write its output file. They also print notes on stderr, and
// make texts safe for a terminal.
//
// The input is the files that the command line names. They may be gzip-compressed. "-" names standard input. Without
// names, the input is standard input.
//
//   PrintMemoryNote(flags.model);   // before the model is opened
//   return ForEachLine(flags.files, [](absl::string_view line) { ... });
#ifndef WEFT_APPS_STREAMS_H_
#define WEFT_APPS_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/text/data/lines.h"

namespace weft {

// Reports whether a command with these `files` reads standard input alone: none is named, or "-".
bool ReadsStandardInput(const std::vector<std::string>& files);

// Returns an error of the input as UsageError does if the command line names `files`, and as Failure does for standard
// input.
absl::Status InputError(const absl::Status& status, const std::vector<std::string>& files);

// Calls `line` for each line until one call fails. Returns that call's error by InputError, with "FILE, line 7: "
// before its message. After each line of standard input, flushes standard output, for programs that wait for each
// answer.
absl::Status ForEachLine(const std::vector<std::string>& files,
                         const std::function<absl::Status(absl::string_view)>& line);

// Encodes the lines and calls `answer` as EncodeLines calls `take` (text/data/lines.h). Errors of `answer` pass through
// Failure, and all through InputError. After each call of `answer` for standard input, flushes standard output.
absl::Status AnswerLines(const std::vector<std::string>& files, size_t max_lines,
                         const std::function<absl::StatusOr<TokenIds>(absl::string_view line)>& encode,
                         const std::function<absl::Status(const TextLines&, absl::Span<const TokenIds>)>& answer);

inline constexpr char kStandardOutput[] = "-";  // as the name of a file to write
// Returns where a command that writes the file `out` prints its summary: stderr if `out` is standard output.
std::FILE* SummaryStream(const std::string& out);
// Checks that `out`, the value of `flag`, can be written: its folder is writable, and `out` is new or, if `overwrite`
// is true, a regular file; or `out` is kStandardOutput. A link is not a regular file. Otherwise returns a usage error.
absl::Status CheckOut(const std::string& flag, const std::string& out, bool overwrite);
// Returns an error if `input`, the value of `flag`, and `out`, that of --out, are one file.
absl::Status CheckNotOut(const std::string& flag, const std::string& input, const std::string& out);
// Writes `text` to `out`, or to standard output. If the file exists and `overwrite` is false, returns an error.
absl::Status WriteOut(const std::string& out, bool overwrite, absl::string_view text);

// Returns `text` with its control characters escaped, as in "\x1b", because a terminal obeys control characters, and a
// tab or a new line would break a line of output. Control characters of the set C1 take two bytes in UTF-8. Those in
// `kept` stay.
std::string Printable(absl::string_view text, absl::string_view kept = "");

// Prints each text as a note on stderr.
void PrintNotes(const std::vector<std::string>& notes);

// Returns "" if the file of the weights of `model`, a file, a folder or RUN@WEIGHTS, has at most `memory` bytes, or if
// there is none. Otherwise returns a line which says that using the model will be slow or fail.
std::string MemoryNote(const std::string& model, uint64_t memory);
// Prints the note for the memory that is available now on stderr.
void PrintMemoryNote(const std::string& model);

}  // namespace weft

#endif  // WEFT_APPS_STREAMS_H_
