// LoadTokenizer loads a tokenizer from the files of a published model or of a training run.
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer("bert-base-uncased"));
//
// Each kind of file is defined in a source file of its own (tokenizer_kind.h), and is a row of the table in
// load_tokenizer.cc.
#ifndef WEFT_TEXT_TOKENIZERS_LOAD_TOKENIZER_H_
#define WEFT_TEXT_TOKENIZERS_LOAD_TOKENIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

// Returns the usual names of all files from which tokenizers are read, including second files such as vocab.json.
std::vector<std::string> TokenizerFileNames();

// Loads the tokenizer in `path`, a file or a folder. In a folder, takes the first kind of the table that has a file
// there. Returns NotFound if `path` doesn't exist, or if the folder has no such file. Returns InvalidArgument, with the
// file and the location in it, if the file can't be used. Prints Tokenizer::note on stderr, once for each file.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path);

// A file of a tokenizer. If it is copied to another folder as `name`, LoadTokenizer recognises the copy.
struct TokenizerFile {
  std::string path, name;
};

// Returns the files that LoadTokenizer(path) reads.
absl::StatusOr<std::vector<TokenizerFile>> TokenizerFiles(const std::string& path);

// A file by its name, without a folder.
struct NamedContents {
  std::string name, contents;
};

// Reads the files that LoadTokenizer(path) reads. Written to another folder, they are the same tokenizer.
absl::StatusOr<std::vector<NamedContents>> ReadTokenizerFiles(const std::string& path);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_LOAD_TOKENIZER_H_
