// Loads a tokenizer from the files of a published model, or from those of a training run.
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer("bert-base-uncased"));
//
// Each kind of file is a row of the table in load_tokenizer.cc, and a file in text/tokenizers/.
#ifndef WEFT_TEXT_LOAD_TOKENIZER_H_
#define WEFT_TEXT_LOAD_TOKENIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/text/tokenizer.h"

namespace weft {

// Returns the usual names of all files that tokenizers are read from, companions included.
std::vector<std::string> TokenizerFileNames();

// Loads the tokenizer in `path`, a file or a folder. In a folder it takes the first kind of the table whose file is
// there. Returns NotFound if the path or such a file doesn't exist, and InvalidArgument, with the file and the
// position in it, if the file can't be used.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path);

// A file of a tokenizer, and the name that LoadTokenizer recognises in the folder that the file is copied to.
struct TokenizerFile {
  std::string path, name;
};

// Returns the files that LoadTokenizer(path) reads.
absl::StatusOr<std::vector<TokenizerFile>> TokenizerFiles(const std::string& path);

}  // namespace weft

#endif  // WEFT_TEXT_LOAD_TOKENIZER_H_
