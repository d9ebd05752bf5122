// These functions read texts from files, which gzip may have compressed.
//
//   WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText("shakespeare.txt"));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<TextFile> texts, ReadTexts("novel.txt,letters,plays.txt.gz"));
#ifndef WEFT_TEXT_DATA_TEXT_FILES_H_
#define WEFT_TEXT_DATA_TEXT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

// Returns the text of a file. Returns NotFound if the file is missing, and InvalidArgument, with the path, if `path` is
// a folder, or if the text is empty, damaged or not UTF-8.
absl::StatusOr<std::string> ReadText(const std::string& path);
// Reads a file as ReadText does, and returns its lines without line ends ("\n" or "\r\n").
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

// Encodes each line of `text` without its line end, and returns the tokens of all lines in one array. `path` is the
// text's file, for errors, which begin with "PATH, line 7".
absl::StatusOr<std::vector<int32_t>> EncodeText(const std::string& path, absl::string_view text,
                                                const Tokenizer& tokenizer);

}  // namespace weft

#endif  // WEFT_TEXT_DATA_TEXT_FILES_H_
