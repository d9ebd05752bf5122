// Tokenizers from the files of published models, and from Weft's own.
#ifndef WEFT_TEXT_LOAD_TOKENIZER_H_
#define WEFT_TEXT_LOAD_TOKENIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/text/tokenizer.h"

namespace weft {

// The tokenizer in a file, or in the first of these that a folder has:
//   tokenizer.json             Weft's own, or Hugging Face's of the kinds byte-level BPE and WordPiece
//   vocab.bpe, encoder.json    GPT-2; also as merges.txt, vocab.json. Either of the two files names both.
//   vocab.txt                  WordPiece, lowercased as BERT does it unless a tokenizer_config.json beside it says
//                              otherwise; a file of another name that ends in .txt too
//   tokenizer.bin              llama2.c's; a file of another name that ends in .bin too
//   tokenizer.model            SentencePiece's, also as spiece.model; a file of another name that ends in .model too
// NotFound if there is none; InvalidArgument, with file and place, if one can't be used.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path);

// The files that LoadTokenizer(path) reads, and the names under which it finds them in a folder that they are copied
// to.
struct TokenizerFile {
  std::string path, name;
};
absl::StatusOr<std::vector<TokenizerFile>> TokenizerFiles(const std::string& path);

}  // namespace weft

#endif  // WEFT_TEXT_LOAD_TOKENIZER_H_
