// TokenFileWriter (token_files.h) writes files in order, one after the other. Only documents.bin is open at the same
// time as a shard.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "weft/base/checksum.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/text/data/token_files.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// A file that grows, and its checksum.
class GrowingFile {
 public:
  static absl::StatusOr<GrowingFile> Create(const std::string& path) {
    GrowingFile file(path, Descriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)));
    if (file.descriptor_.get() < 0) return SystemStatus("create", path, errno);
    return file;
  }

  // Appends the lower `bytes` bytes of `number`, the lowest first.
  absl::Status Append(uint64_t number, int64_t bytes) {
    const size_t size = buffer_.size();
    buffer_.resize(size + static_cast<size_t>(bytes));
    std::memcpy(buffer_.data() + size, &number, static_cast<size_t>(bytes));
    ++count_;
    constexpr size_t kBuffer = size_t{1} << 20;  // bytes: long against the cost of a write
    static_assert(kBuffer % kTokenBlock == 0);   // so Write gets whole blocks, except at the end
    return buffer_.size() < kBuffer ? absl::OkStatus() : Write();
  }

  // Writes what remains, syncs and closes the file.
  absl::StatusOr<TokenIndex::File> Finish() {
    WEFT_RETURN_IF_ERROR(Write());
    if (fsync(descriptor_.get()) != 0 || !descriptor_.Close()) return SystemStatus("write", path_, errno);
    return TokenIndex::File{count_, checksummer_.Digest(), blocks_};
  }

  int64_t count() const { return count_; }  // of the numbers so far

 private:
  GrowingFile(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  absl::Status Write() {
    checksummer_.Add(buffer_);
    for (size_t begin = 0; begin < buffer_.size(); begin += kTokenBlock) {
      blocks_ += Checksum(absl::string_view(buffer_).substr(begin, kTokenBlock));
    }
    WEFT_RETURN_IF_ERROR(descriptor_.Write(buffer_, path_));
    buffer_.clear();
    return absl::OkStatus();
  }

  std::string path_;
  Descriptor descriptor_;
  std::string buffer_;
  Checksummer checksummer_;
  std::string blocks_;  // the digits of the blocks' checksums
  int64_t count_ = 0;
};

// Returns AlreadyExists unless `folder` does not exist or is an empty folder, which a rename replaces.
absl::Status CheckFree(const std::string& folder) {
  std::error_code error;
  if (!Exists(folder) || (fs::is_directory(folder, error) && fs::is_empty(folder, error))) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(folder, " exists, and token files are written to a new folder"));
}

// Reports whether TokenFileWriter may have written a file of this name.
bool IsOwnFile(const std::string& name) {
  const std::vector<std::string> tokenizer = TokenizerFileNames();
  return absl::StartsWith(name, "tokens-") || absl::EndsWith(name, kTemporarySuffix) || name == kTokenIndexFile ||
         name == kDocumentsFile || std::find(tokenizer.begin(), tokenizer.end(), name) != tokenizer.end();
}

// Creates the folder `path` if it is missing, locks it, and removes files that a killed writer left in it. If the
// folder has any other file, returns AlreadyExists and removes nothing.
absl::StatusOr<Descriptor> MakeEmpty(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator i(path, error), end; !error && i != end; i.increment(error)) {
    if (IsOwnFile(i->path().filename().string())) continue;
    return absl::AlreadyExistsError(absl::StrCat(path, ", where token files are prepared, has other files"));
  }
  fs::create_directories(path, error);
  if (error) return SystemStatus("create", path, error.value());
  WEFT_ASSIGN_OR_RETURN(Descriptor lock, LockFolder(path));
  for (fs::directory_iterator i(path, error), end; !error && i != end; i.increment(error)) fs::remove_all(*i, error);
  if (error) return SystemStatus("clear", path, error.value());
  return lock;
}

}  // namespace

struct TokenFileWriter::State {
  ~State() {
    std::error_code error;
    if (!writing.empty()) fs::remove_all(writing, error);
  }

  absl::Status FinishShard() {
    WEFT_ASSIGN_OR_RETURN(index.shards.emplace_back(), shard->Finish());
    shard.reset();
    return absl::OkStatus();
  }

  int64_t shard_tokens;
  std::string folder, writing;  // `writing`: FOLDER.tmp; empty once it is renamed
  std::optional<Descriptor> lock;
  std::unique_ptr<Tokenizer> tokenizer;
  TokenIndex index;
  std::optional<GrowingFile> shard, documents;
  int64_t tokens = 0;
  bool in_document = false;
};

TokenFileWriter::TokenFileWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TokenFileWriter::TokenFileWriter(TokenFileWriter&&) noexcept = default;
TokenFileWriter::~TokenFileWriter() = default;

absl::StatusOr<TokenFileWriter> TokenFileWriter::Create(const std::string& folder,
                                                        const std::vector<NamedContents>& tokenizer,
                                                        int64_t shard_tokens) {
  if (shard_tokens < 1) return InvalidArgument("shard_tokens is ", shard_tokens, ", wanted at least 1");
  auto state = std::make_unique<State>();
  state->shard_tokens = shard_tokens;
  state->folder = fs::path(folder).lexically_normal().string();
  if (absl::EndsWith(state->folder, "/")) state->folder.pop_back();
  WEFT_RETURN_IF_ERROR(CheckFree(state->folder));
  const std::string writing = state->folder + kTemporarySuffix;
  WEFT_ASSIGN_OR_RETURN(state->lock, MakeEmpty(writing));
  state->writing = writing;
  for (const auto& [name, contents] : tokenizer) WEFT_RETURN_IF_ERROR(WriteFile(writing + "/" + name, {contents}));
  WEFT_ASSIGN_OR_RETURN(state->tokenizer, LoadTokenizer(writing));
  WEFT_ASSIGN_OR_RETURN(state->index.tokenizer, TokenizerChecksum(writing));
  state->index.vocabulary = state->tokenizer->vocabulary_size();
  WEFT_ASSIGN_OR_RETURN(state->documents, GrowingFile::Create(writing + "/" + kDocumentsFile));
  return TokenFileWriter(std::move(state));
}

absl::Status TokenFileWriter::Add(absl::Span<const int32_t> ids) {
  State& s = *state_;
  for (const int32_t id : ids) {
    if (id < 0 || id >= s.index.vocabulary) {
      return InvalidArgument("id ", id, " is not in 0 .. ", s.index.vocabulary - 1);
    }
    if (!s.in_document) WEFT_RETURN_IF_ERROR(s.documents->Append(static_cast<uint64_t>(s.tokens), sizeof s.tokens));
    s.in_document = true;
    if (s.shard.has_value() && s.shard->count() == s.shard_tokens) WEFT_RETURN_IF_ERROR(s.FinishShard());
    if (!s.shard.has_value()) {
      WEFT_ASSIGN_OR_RETURN(s.shard, GrowingFile::Create(s.writing + "/" + ShardFile(s.index.shards.size())));
    }
    WEFT_RETURN_IF_ERROR(s.shard->Append(static_cast<uint64_t>(id), s.index.id_bytes()));
    ++s.tokens;
  }
  return absl::OkStatus();
}

void TokenFileWriter::EndDocument() { state_->in_document = false; }
bool TokenFileWriter::in_document() const { return state_->in_document; }

absl::Status TokenFileWriter::Finish() {
  State& s = *state_;
  if (s.tokens == 0) return InvalidArgument("there are no tokens to write to ", s.folder);
  WEFT_RETURN_IF_ERROR(s.FinishShard());
  WEFT_ASSIGN_OR_RETURN(s.index.documents, s.documents->Finish());
  WEFT_RETURN_IF_ERROR(WriteFile(s.writing + "/" + kTokenIndexFile, {s.index.ToJson()}));
  if (rename(s.writing.c_str(), s.folder.c_str()) != 0) return SystemStatus("write", s.folder, errno);
  s.writing.clear();
  return SyncParent(s.folder);
}

Tokenizer& TokenFileWriter::tokenizer() const { return *state_->tokenizer; }
int64_t TokenFileWriter::tokens() const { return state_->tokens; }
int64_t TokenFileWriter::documents() const { return state_->documents->count(); }

}  // namespace weft
