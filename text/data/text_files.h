// ReadTexts reads the texts that a list of files and folders names.
//
//   WEFT_ASSIGN_OR_RETURN(const std::vector<TextFile> texts, ReadTexts("novel.txt,letters,plays.txt.gz"));
#ifndef WEFT_TEXT_DATA_TEXT_FILES_H_
#define WEFT_TEXT_DATA_TEXT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

struct TextFile {
  std::string path, text;
};

// Returns the paths of the files that `list` names: "FILE_OR_FOLDER,FILE_OR_FOLDER". A `list` that exists is one path,
// even with a comma. A folder stands for its files in the order of their names, without hidden files and subfolders.
// Returns InvalidArgument if a folder has no files.
absl::StatusOr<std::vector<std::string>> ListTexts(const std::string& list);
// Reads the files of ListTexts with ReadText (text/data/corpus.h).
absl::StatusOr<std::vector<TextFile>> ReadTexts(const std::string& list);

}  // namespace weft

#endif  // WEFT_TEXT_DATA_TEXT_FILES_H_
