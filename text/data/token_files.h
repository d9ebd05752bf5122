// Token files are a folder with the tokens of a corpus of any size, written once:
//
//   tokens-00000.bin ...   shards: the ids in a row, little-endian, 16 bits each if the vocabulary fits, else 32 bits
//   documents.bin          the position of each document's first token, 64 bits each
//   index.json             sizes and checksums of these files and of their blocks, the vocabulary's size, the checksum
//                          of the tokenizer
//   tokenizer.json ...     the tokenizer's files
//
//   WEFT_ASSIGN_OR_RETURN(const TokenFiles files, TokenFiles::Open("corpus"));
//   WEFT_RETURN_IF_ERROR(files.Read(DataSplit::kTrain, begin, absl::MakeSpan(window)));
//
// `weft tokenize --out=FOLDER` writes them with a TokenFileWriter:
//
//   WEFT_ASSIGN_OR_RETURN(TokenFileWriter writer, TokenFileWriter::Create("corpus", *ReadTokenizerFiles("gpt2")));
//   for (...) {
//     WEFT_RETURN_IF_ERROR(writer.Add(ids));      // more tokens of the document
//     writer.EndDocument();
//   }
//   WEFT_RETURN_IF_ERROR(writer.Finish());        // now the folder exists
#ifndef WEFT_TEXT_DATA_TOKEN_FILES_H_
#define WEFT_TEXT_DATA_TOKEN_FILES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/file.h"
#include "weft/text/data/corpus.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

// The bytes of a block, which has a checksum of its own: as fast to read as one page, and the index of a terabyte still
// fits in a JSON file.
inline constexpr int64_t kTokenBlock = int64_t{1} << 18;

// The index of a folder of token files. A shard and documents.bin have a count of tokens or of documents.
struct TokenIndex {
  struct File {
    int64_t count = 0;
    std::string checksum;
    std::string blocks = "";  // the digits of all blocks' checksums; empty in an index of an earlier version
  };

  int64_t vocabulary = 0;
  std::vector<File> shards;
  File documents;
  std::string tokenizer;  // TokenizerChecksum of the folder

  int64_t id_bytes() const { return vocabulary <= int64_t{1} << 16 ? 2 : 4; }
  std::string ToJson() const;
};

inline constexpr char kTokenIndexFile[] = "index.json", kDocumentsFile[] = "documents.bin";
std::string ShardFile(size_t shard);  // "tokens-00000.bin"

// Returns the checksum of the names and contents of the tokenizer's files in `folder`.
absl::StatusOr<std::string> TokenizerChecksum(const std::string& folder);

// Whether TokenFiles::Open accepts a folder without some of its shards. documents.bin must always exist.
enum class MissingShards : uint8_t { kRefuse, kAllow };

// A file of token files whose bytes are compared with their checksums before they are first used. The whole file counts
// as one block if the index has no checksums of blocks.
class CheckedFile {
 public:
  CheckedFile() = default;  // has no bytes
  // `of`: the file's entry of the index.
  CheckedFile(RandomAccessFile file, const TokenIndex::File& of);

  // Copies `size` bytes from position `begin` to `out`. Threads may call this at the same time. Returns DataLoss, with
  // the path, if a block was damaged.
  absl::Status Read(int64_t begin, size_t size, void* out) const;
  // Reads the whole file, and compares it with its checksum.
  absl::Status Verify() const { return Check(0, file_.size(), checksum_); }

 private:
  absl::Status Check(int64_t begin, int64_t end, absl::string_view expected) const;

  RandomAccessFile file_;
  std::string checksum_, blocks_;
  int64_t block_bytes_ = 1;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // for each block, whether it was compared with its checksum
};

class TokenFiles final : public TokenSource {
 public:
  // Reports whether `path` is a folder with an index of token files.
  static bool IsAt(const std::string& path);
  // Opens the files. Checks the index, the size of each file, and the tokenizer's checksum, but reads no tokens, so
  // that a corpus of any size opens at once. Returns NotFound if a file is missing, InvalidArgument if one is damaged.
  // With MissingShards::kAllow, only calls that need a missing shard fail: they return NotFound with the shard's path.
  // Calls that need a damaged block return DataLoss with the file's path; so does Open for documents.bin.
  static absl::StatusOr<TokenFiles> Open(const std::string& folder, MissingShards missing = MissingShards::kRefuse);
  // Reads all files. Returns DataLoss with the path of the first file whose checksum differs from the index.
  absl::Status Verify() const;
  // Makes all tokens both splits. Otherwise the last tenth of the tokens is for validation.
  void UseWhole() { whole_ = true; }

  int64_t size(DataSplit split) const override;
  absl::Status Read(DataSplit split, int64_t begin, absl::Span<int32_t> out) const override;
  absl::Status Documents(DataSplit split, int64_t begin, absl::Span<int32_t> out) const override;
  int64_t missing_files() const override;
  absl::Status CheckPresent(DataSplit split, int64_t begin, int64_t size) const override;

  const TokenIndex& index() const { return index_; }
  int64_t tokens() const { return ends_.empty() ? 0 : ends_.back(); }
  int64_t documents() const { return index_.documents.count; }
  // Returns a checksum of all files, which equals that of a copy of the folder.
  std::string Fingerprint() const;

 private:
  TokenFiles(std::string folder, TokenIndex index) : folder_(std::move(folder)), index_(std::move(index)) {}
  absl::StatusOr<CheckedFile> OpenFile(const std::string& name, const TokenIndex::File& of, int64_t item_bytes) const;
  // Returns the positions of the first tokens of documents `document`, ..., at most `count` and up to the last one.
  absl::StatusOr<std::vector<int64_t>> ReadStarts(int64_t document, int64_t count) const;
  absl::Status ReadCoarseStarts();
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  int64_t First(DataSplit split) const;  // the position of the first token of `split`
  // Returns the shard of the token at `position`.
  size_t ShardAt(int64_t position) const;

  std::string folder_;
  TokenIndex index_;
  bool whole_ = false;                               // UseWhole
  std::vector<int64_t> ends_;                        // the position after the last token of each shard
  std::vector<absl::StatusOr<CheckedFile>> shards_;  // one for each of index_.shards; NotFound: missing
  CheckedFile documents_;                            // documents.bin
  int64_t stride_ = 1;
  std::vector<int64_t> starts_;  // the positions of documents 0, stride_, 2 stride_, ...
};

inline constexpr int64_t kShardTokens = int64_t{1} << 27;  // 256 MiB of 16-bit ids

// A TokenFileWriter writes a folder of token files in bounded memory, whatever their size.
class TokenFileWriter {
 public:
  // `tokenizer`: the files of the tokenizer, which are copied. `shard_tokens`: maximum number of ids in a file. All
  // files are written to the folder FOLDER.tmp, which Finish renames; a killed process leaves it, and the next writer
  // of `folder` replaces it. Returns AlreadyExists if `folder` exists and is not empty, and FailedPrecondition if
  // another process is writing it.
  static absl::StatusOr<TokenFileWriter> Create(const std::string& folder, const std::vector<NamedContents>& tokenizer,
                                                int64_t shard_tokens = kShardTokens);
  TokenFileWriter(TokenFileWriter&&) noexcept;
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

#endif  // WEFT_TEXT_DATA_TOKEN_FILES_H_
