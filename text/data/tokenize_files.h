// TokenizeFiles writes the tokens of texts of any size as token files (token_files.h), in bounded memory.
//
//   TokenizeOptions options = {.folder = "corpus", .tokenizer = *ReadTokenizerFiles("gpt2")};   // load_tokenizer.h
//   WEFT_ASSIGN_OR_RETURN(const TokenizeResult result, TokenizeFiles({"a.txt", "b.txt.gz"}, options));
#ifndef WEFT_TEXT_DATA_TOKENIZE_FILES_H_
#define WEFT_TEXT_DATA_TOKENIZE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/text/data/token_files.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {

// Where a document ends, besides the end of each file. kBlankLine: at an empty line, which belongs to no document.
// kEndOfText: where the text of the tokenizer's end token, such as "<|endoftext|>", stands in a file.
enum class DocumentEnd : uint8_t { kFile, kBlankLine, kEndOfText };

struct TokenizeOptions {
  std::string folder;                    // to write; must not exist, or be empty
  std::vector<NamedContents> tokenizer;  // its files
  DocumentEnd document_end = DocumentEnd::kFile;
  std::optional<bool> special_tokens;   // Tokenizer::ReadSpecial
  int64_t shard_tokens = kShardTokens;  // maximum number of tokens in a file
  // Bytes of text that are encoded at once. Longer documents are cut before the first character of a line, before a
  // space or, if there is neither, between any two characters.
  size_t chunk = size_t{1} << 20;
};

struct TokenizeResult {
  int64_t tokens = 0, documents = 0, bytes = 0, vocabulary = 0;  // `bytes`: of the texts, decompressed
};

// Tokenizes the files, which may be compressed by gzip, in order. Without `paths`, tokenizes standard input. Each
// document ends with the tokenizer's end token, if there is one. Returns InvalidArgument, with the file and the
// position in bytes, if a text cannot be encoded.
absl::StatusOr<TokenizeResult> TokenizeFiles(const std::vector<std::string>& paths, const TokenizeOptions& options);

}  // namespace weft

#endif  // WEFT_TEXT_DATA_TOKENIZE_FILES_H_
