// A TokenFileWriter writes a folder of token files (token_files.h) in bounded memory, whatever their size.
//
//   WEFT_ASSIGN_OR_RETURN(TokenFileWriter writer, TokenFileWriter::Create("corpus", *ReadTokenizerFiles("gpt2")));
//   for (...) {
//     WEFT_RETURN_IF_ERROR(writer.Add(ids));      // more tokens of the document
//     writer.EndDocument();
//   }
//   WEFT_RETURN_IF_ERROR(writer.Finish());        // now the folder exists
#ifndef WEFT_TEXT_DATA_TOKEN_FILE_WRITER_H_
#define WEFT_TEXT_DATA_TOKEN_FILE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

inline constexpr int64_t kShardTokens = int64_t{1} << 27;  // 256 MiB of 16-bit ids

class TokenFileWriter {
 public:
  // `tokenizer`: the files of the tokenizer, which are copied. `shard_tokens`: maximum number of ids in a file. All
  // files are written to the folder FOLDER.tmp, which Finish renames; a killed process leaves it, and the next writer
  // of `folder` replaces it. Returns AlreadyExists if `folder` exists and is not empty, and FailedPrecondition if
  // another process is writing it.
  static absl::StatusOr<TokenFileWriter> Create(const std::string& folder, const std::vector<NamedContents>& tokenizer,
                                                int64_t shard_tokens = kShardTokens);
  TokenFileWriter(TokenFileWriter&&) noexcept;
  TokenFileWriter& operator=(TokenFileWriter&&) noexcept;
  ~TokenFileWriter();  // removes FOLDER.tmp unless Finish succeeded

  // Adds tokens to the present document. Returns InvalidArgument if an id is not in the vocabulary.
  absl::Status Add(absl::Span<const int32_t> ids);
  // Lets the next token begin a document. Does nothing if the present document is empty.
  void EndDocument();
  bool in_document() const;  // whether the present document has tokens
  // Ends the last document, writes the index, syncs all files and renames the folder. Returns InvalidArgument if there
  // are no tokens.
  absl::Status Finish();

  Tokenizer& tokenizer() const;
  int64_t tokens() const;
  int64_t documents() const;

 private:
  struct State;
  explicit TokenFileWriter(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace weft

#endif  // WEFT_TEXT_DATA_TOKEN_FILE_WRITER_H_
