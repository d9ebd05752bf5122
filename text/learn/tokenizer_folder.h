// These functions write a tokenizer to a folder of its own, from which LoadTokenizer (text/tokenizers/load_tokenizer.h)
// reads it.
//
//   WEFT_RETURN_IF_ERROR(CheckTokenizerFolder("tokenizer", /*overwrite=*/false));   // before long work
//   WEFT_RETURN_IF_ERROR(WriteTokenizerFolder("tokenizer", {"tokenizer.json", contents}));
#ifndef WEFT_TEXT_LEARN_TOKENIZER_FOLDER_H_
#define WEFT_TEXT_LEARN_TOKENIZER_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {

// Returns AlreadyExists if WriteTokenizerFolder must not write `folder`: it is a file, or has files. With `overwrite`,
// it may have the files of a tokenizer, but no others. Also returns the error of a place where nothing can be written.
absl::Status CheckTokenizerFolder(const std::string& folder, bool overwrite);
// Writes `file` to `folder`, which it makes if necessary. Removes the files of other tokenizers there.
absl::Status WriteTokenizerFolder(const std::string& folder, const NamedContents& file);

}  // namespace weft

#endif  // WEFT_TEXT_LEARN_TOKENIZER_FOLDER_H_
