// A LineReader reads lines of text from files, which gzip may have compressed, or from standard input.
//
//   LineReader reader({"a.txt", "b.txt.gz"});
//   while (true) {
//     WEFT_ASSIGN_OR_RETURN(const TextLines next, reader.Next(/*max_lines=*/32));
//     if (next.lines.empty()) break;
//     ...  // next.Location(0) is the location of next.lines[0], at first "a.txt, line 1"
//   }
//
// Other functions read whole texts from such files.
//
//   WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText("shakespeare.txt"));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<TextFile> texts, ReadTexts("novel.txt,letters,plays.txt.gz"));
#ifndef WEFT_TEXT_DATA_LINES_H_
#define WEFT_TEXT_DATA_LINES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

struct TextLines {
  std::string path;  // for errors
  std::vector<std::string> lines;
  std::vector<size_t> numbers = {};  // the lines' numbers in the file, from 1; empty means 1, 2, ...

  std::string Location(size_t index) const;  // "FILE, line 7"
};

// Spreadsheets begin UTF-8 files with this mark, which is no part of the first line.
inline constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The path of standard input, as in other programs.
inline constexpr char kStandardInput[] = "-";

class LineReader {
 public:
  // Reads the files in order; kStandardInput names standard input. Without `paths`, reads standard input.
  explicit LineReader(std::vector<std::string> paths);

  // Returns the next lines, without a file's byte-order mark and line ends "\n" or "\r\n": up to `max_lines`, all of
  // one file. On standard input, waits for the first of these lines, but not for the others. After the last line,
  // returns no lines. A line of standard input may have ReadLimit() bytes (base/file.h).
  absl::StatusOr<TextLines> Next(size_t max_lines);

 private:
  absl::StatusOr<std::optional<std::string>> NextLine();
  bool HasLine();
  bool Ready();
  absl::Status ReadMore();

  const std::vector<std::string> paths_;
  size_t opened_ = 0;    // number of files that were opened
  std::string path_;     // of the file that is read now
  size_t number_ = 0;    // of the last line
  std::string buffer_;   // bytes of the file that were read
  size_t begin_ = 0;     // where the next line begins in buffer_
  size_t searched_ = 0;  // buffer_ has no "\n" from begin_ to here
  bool ended_;           // buffer_ has the end of the file; remembered, because a terminal may go on after its end
};

// Returns the text of a file. Returns NotFound if the file is missing, and InvalidArgument, with the path, if `path` is
// a folder, or if the text is empty, damaged or not UTF-8.
absl::StatusOr<std::string> ReadText(const std::string& path);
// Reads a file as ReadText does, and returns its lines without a byte-order mark and line ends ("\n" or "\r\n").
absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path);
// Returns the King James Bible, one verse a line. Returns NotFound if Debian's package bible-kjv is not installed.
absl::StatusOr<std::string> ReadKingJamesBible();

// Returns the paths of the files that `list` names: "FILE_OR_FOLDER,FILE_OR_FOLDER". A `list` that exists is one path,
// even with a comma. A folder stands for its files in the order of their names, without hidden files and subfolders.
// Returns InvalidArgument if a folder has no files.
absl::StatusOr<std::vector<std::string>> ListTexts(const std::string& list);

struct TextFile {
  std::string path, text;
};
// Reads the files of ListTexts with ReadText.
absl::StatusOr<std::vector<TextFile>> ReadTexts(const std::string& list);

// Number of batches of lines to read at once. Models run lines of similar length together; from fewer lines they could
// not fill their batches.
inline constexpr size_t kBatchesAtOnce = 32;

using TokenIds = std::vector<int32_t>;
using LineEncoder = absl::FunctionRef<absl::StatusOr<TokenIds>(absl::string_view line)>;
// Returns the ids of each line. If a line cannot be encoded, returns an error that begins with the line's location.
absl::StatusOr<std::vector<TokenIds>> EncodeAll(const TextLines& lines, LineEncoder encode);
// Reads the lines of `paths`, or of standard input without `paths`, and encodes them. Calls `take` with up to
// `max_lines` lines of one file at a time, and with their ids. If a line cannot be encoded, `ids` ends before that
// line, but `lines` does not. After this call, returns the line's error as EncodeAll does. An error of `take` is
// returned at once.
absl::Status EncodeLines(std::vector<std::string> paths, size_t max_lines, LineEncoder encode,
                         absl::FunctionRef<absl::Status(const TextLines& lines, absl::Span<const TokenIds> ids)> take);
// Encodes each line of `text` without its line end, and returns the tokens of all lines in one array. `path` is the
// text's file, for errors, which begin with "PATH, line 7".
absl::StatusOr<std::vector<int32_t>> EncodeText(const std::string& path, absl::string_view text,
                                                const Tokenizer& tokenizer);

}  // namespace weft

#endif  // WEFT_TEXT_DATA_LINES_H_
