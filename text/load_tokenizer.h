// Loads a tokenizer from the files of a published model, or from those of a training run.
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer("bert-base-uncased"));
//
// Each kind of file is one row of the table in load_tokenizer.cc. A new kind needs its tokenizer and a row.
#ifndef WEFT_TEXT_LOAD_TOKENIZER_H_
#define WEFT_TEXT_LOAD_TOKENIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/text/tokenizer.h"

namespace weft {

// A kind of file that holds a tokenizer, and how it is recognised: by its name, or else by its extension.
struct TokenizerKind {
  const char* name;                  // "SentencePiece"
  const char* file;                  // the file's usual name: "tokenizer.model"
  const char* other_name = nullptr;  // a second usual name: "spiece.model"
  const char* extension = nullptr;   // ".model" if files of any other name with this extension are of this kind too
  const char* companion = nullptr;   // a second file that is read from the same folder
  bool companion_required = false;   // true: either file stands for both; false: the companion is optional
  // Loads the tokenizer from `file`; `companion` is empty if there is none. Errors begin with the path they are about.
  absl::StatusOr<std::unique_ptr<Tokenizer>> (*load)(const std::string& file, const std::string& companion);
};

// Returns all kinds, in the order in which LoadTokenizer searches a folder for their files.
absl::Span<const TokenizerKind> TokenizerKinds();

// Returns the usual names of all files that tokenizers are read from, companions included.
std::vector<std::string> TokenizerFileNames();

// Loads the tokenizer in `path`, a file or a folder. In a folder it takes the first kind of TokenizerKinds() whose file
// is there. Returns NotFound if the path or such a file doesn't exist, and InvalidArgument, with the file and the
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
