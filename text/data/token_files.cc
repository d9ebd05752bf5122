// The index gives the number of ids of each file, and so its size. A file of another size is an error when the folder
// is opened. Other damage is found when a block is first read, or by Verify.
#include "weft/text/data/token_files.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_format.h"
#include "weft/base/checksum.h"
#include "weft/base/json.h"
#include "weft/base/status.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "weft token files";
constexpr int64_t kVersion = 1;
constexpr int64_t kMaxCount = int64_t{1} << 48;  // ids in a file: sums of counts and sizes in bytes stay below 2^63
constexpr int64_t kPositionBytes = 8;            // of a number in documents.bin

// Returns json[key] if it is an integer from 0 to `high`.
absl::StatusOr<int64_t> Count(const Json& json, const char* key, int64_t high) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (found == json.end() || !found->is_number_integer()) return InvalidArgument("'", key, "' is not a whole number");
  const std::optional<int64_t> count = WholeNumber(*found);
  if (!count || *count < 0 || *count > high) {
    return InvalidArgument("'", key, "' is ", found->dump(), ", wanted 0 to ", high);
  }
  return *count;
}

absl::StatusOr<std::string> Text(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (found == json.end() || !found->is_string()) return InvalidArgument("'", key, "' is not a text");
  return found->get<std::string>();
}

absl::StatusOr<TokenIndex::File> File(const Json& json, const char* count) {
  TokenIndex::File file;
  WEFT_ASSIGN_OR_RETURN(file.count, Count(json, count, kMaxCount));
  WEFT_ASSIGN_OR_RETURN(file.checksum, Text(json, "checksum"));
  if (json.contains("blocks")) {
    WEFT_ASSIGN_OR_RETURN(file.blocks, Text(json, "blocks"));
  }
  return file;
}

absl::StatusOr<TokenIndex> ToIndex(const Json& json) {
  if (json.value("format", Json()) != kFormat) return InvalidArgument("'format' is not \"", kFormat, "\"");
  WEFT_ASSIGN_OR_RETURN(const int64_t version, Count(json, "version", kMaxCount));
  if (version != kVersion) return InvalidArgument("version ", version, " is not supported; wanted ", kVersion);
  TokenIndex index;
  WEFT_ASSIGN_OR_RETURN(index.vocabulary, Count(json, "vocabulary", int64_t{1} << 31));
  WEFT_ASSIGN_OR_RETURN(const int64_t id_bytes, Count(json, "id_bytes", 4));
  if (id_bytes != index.id_bytes()) {
    return InvalidArgument("'id_bytes' is ", id_bytes, ", wanted ", index.id_bytes(), " for a vocabulary of ",
                           index.vocabulary);
  }
  WEFT_ASSIGN_OR_RETURN(index.tokenizer, Text(json, "tokenizer"));
  WEFT_ASSIGN_OR_RETURN(index.documents, Annotate(File(json.value("documents", Json()), "count"), "documents"));
  const auto shards = json.find("shards");
  if (shards == json.end() || !shards->is_array()) return InvalidArgument("'shards' is not an array");
  for (const Json& shard : *shards) {
    WEFT_ASSIGN_OR_RETURN(TokenIndex::File file, Annotate(File(shard, "tokens"), ShardFile(index.shards.size())));
    index.shards.push_back(std::move(file));
  }
  return index;
}

template <class Id>
void CopyIds(const char* from, absl::Span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    Id id;
    std::memcpy(&id, from + i * sizeof id, sizeof id);
    out[i] = static_cast<int32_t>(id);
  }
}

// Returns the file's entry of the index: `count` is "tokens" or "count".
Json ToJson(const TokenIndex::File& file, const char* count) {
  Json json = {{count, file.count}, {"checksum", file.checksum}};
  if (!file.blocks.empty()) json["blocks"] = file.blocks;
  return json;
}

constexpr size_t kDigits = kNoChecksum.size();  // of a checksum

int64_t Blocks(int64_t bytes) { return (bytes + kTokenBlock - 1) / kTokenBlock; }

}  // namespace

CheckedFile::CheckedFile(RandomAccessFile file, const TokenIndex::File& of)
    : file_(std::move(file)),
      checksum_(of.checksum),
      blocks_(of.blocks.empty() ? of.checksum : of.blocks),
      block_bytes_(of.blocks.empty() ? std::max<int64_t>(file_.size(), 1) : kTokenBlock),
      checked_(new std::atomic<bool>[blocks_.size() / kDigits]()) {}

absl::Status CheckedFile::Read(int64_t begin, size_t size, void* out) const {
  const int64_t end = begin + static_cast<int64_t>(size);
  for (int64_t block = begin / block_bytes_; block * block_bytes_ < end; ++block) {
    if (checked_[block].load(std::memory_order_relaxed)) continue;
    const absl::string_view digits = absl::string_view(blocks_).substr(static_cast<size_t>(block) * kDigits, kDigits);
    const int64_t first = block * block_bytes_;
    WEFT_RETURN_IF_ERROR(Check(first, std::min(first + block_bytes_, file_.size()), digits));
    checked_[block].store(true, std::memory_order_relaxed);
  }
  return file_.Read(begin, size, out);
}

// Returns DataLoss unless `expected` is the checksum of the bytes from `begin` to `end`.
absl::Status CheckedFile::Check(int64_t begin, int64_t end, absl::string_view expected) const {
  std::string bytes;
  Checksummer checksummer;
  for (int64_t at = begin; at < end; at += kTokenBlock) {
    bytes.resize(static_cast<size_t>(std::min(kTokenBlock, end - at)));
    WEFT_RETURN_IF_ERROR(file_.Read(at, bytes.size(), bytes.data()));
    checksummer.Add(bytes);
  }
  const std::string found = checksummer.Digest();
  if (found == expected) return absl::OkStatus();
  const bool whole = begin == 0 && end == file_.size();
  return absl::DataLossError(absl::StrCat(file_.path(), ": ", whole ? "its checksum" : "the checksum of its bytes ",
                                          whole ? "" : absl::StrCat(begin, " to ", end - 1), " is ", found, ", but ",
                                          kTokenIndexFile, " has ", expected));
}

std::string ShardFile(size_t shard) { return absl::StrFormat("tokens-%05d.bin", shard); }

std::string TokenIndex::ToJson() const {
  Json json = {{"format", kFormat},      {"version", kVersion},    {"vocabulary", vocabulary},
               {"id_bytes", id_bytes()}, {"tokenizer", tokenizer}, {"documents", weft::ToJson(documents, "count")},
               {"shards", Json::array()}};
  for (const File& shard : shards) json["shards"].push_back(weft::ToJson(shard, "tokens"));
  return json.dump(2) + "\n";
}

absl::StatusOr<std::string> TokenizerChecksum(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<NamedContents> files, ReadTokenizerFiles(folder));
  Checksummer checksummer;
  for (const auto& [name, contents] : files) {
    checksummer.Add(absl::StrCat(name, "\n", contents.size(), "\n", contents));
  }
  return checksummer.Digest();
}

bool TokenFiles::IsAt(const std::string& path) { return Exists(path + "/" + kTokenIndexFile); }

absl::StatusOr<CheckedFile> TokenFiles::OpenFile(const std::string& name, const TokenIndex::File& of,
                                                 int64_t item_bytes) const {
  WEFT_ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(Path(name)));
  const int64_t bytes = of.count * item_bytes;
  if (file.size() != bytes) {
    return InvalidArgument(Path(name), " has ", file.size(), " bytes, but ", kTokenIndexFile, " gives it ", bytes);
  }
  const size_t digits = of.blocks.empty() ? of.checksum.size() : of.blocks.size();
  if (const size_t wanted = kDigits * static_cast<size_t>(of.blocks.empty() ? 1 : Blocks(bytes)); digits != wanted) {
    return InvalidArgument(Path(kTokenIndexFile), ": the checksums of ", name, " have ", digits, " digits, wanted ",
                           wanted);
  }
  return CheckedFile(std::move(file), of);
}

absl::StatusOr<TokenFiles> TokenFiles::Open(const std::string& folder, MissingShards missing) {
  const std::string path = folder + "/" + kTokenIndexFile;
  WEFT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  WEFT_ASSIGN_OR_RETURN(TokenIndex index, Annotate(ToIndex(json), path));
  TokenFiles files(folder, std::move(index));
  int64_t end = 0;
  for (size_t i = 0; i < files.index_.shards.size(); ++i) {
    const TokenIndex::File& of = files.index_.shards[i];
    absl::StatusOr<CheckedFile> shard = files.OpenFile(ShardFile(i), of, files.index_.id_bytes());
    const bool may_be_missing = missing == MissingShards::kAllow && absl::IsNotFound(shard.status());
    if (!shard.ok() && !may_be_missing) return shard.status();
    files.shards_.push_back(std::move(shard));
    files.ends_.push_back(end += of.count);
  }
  WEFT_ASSIGN_OR_RETURN(files.documents_, files.OpenFile(kDocumentsFile, files.index_.documents, kPositionBytes));
  WEFT_RETURN_IF_ERROR(files.ReadCoarseStarts());
  WEFT_ASSIGN_OR_RETURN(const std::string tokenizer, TokenizerChecksum(folder));
  if (tokenizer != files.index_.tokenizer) {
    return InvalidArgument(folder, ": the tokenizer's files changed after the tokens were written: their checksum is ",
                           tokenizer, ", but ", kTokenIndexFile, " has ", files.index_.tokenizer);
  }
  return files;
}

absl::Status TokenFiles::Verify() const {
  for (size_t i = 0; i < shards_.size(); ++i) {
    WEFT_RETURN_IF_ERROR(shards_[i].status());
    WEFT_RETURN_IF_ERROR(shards_[i]->Verify());
  }
  return documents_.Verify();
}

int64_t TokenFiles::First(DataSplit split) const {
  return whole_ || split == DataSplit::kTrain ? 0 : tokens() - (tokens() + 9) / 10;
}

int64_t TokenFiles::size(DataSplit split) const {
  const int64_t cut = First(DataSplit::kValidation);
  return split == DataSplit::kTrain && !whole_ ? cut : tokens() - cut;
}

size_t TokenFiles::ShardAt(int64_t position) const {
  return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), position) - ends_.begin());
}

int64_t TokenFiles::missing_files() const {
  return std::count_if(shards_.begin(), shards_.end(), [](const auto& shard) { return !shard.ok(); });
}

absl::Status TokenFiles::CheckPresent(DataSplit split, int64_t begin, int64_t size) const {
  const int64_t first = First(split) + begin;
  for (size_t shard = ShardAt(first);
       shard < shards_.size() && ends_[shard] - index_.shards[shard].count < first + size; ++shard) {
    if (index_.shards[shard].count > 0) WEFT_RETURN_IF_ERROR(shards_[shard].status());
  }
  return absl::OkStatus();
}

absl::Status TokenFiles::Read(DataSplit split, int64_t begin, absl::Span<int32_t> out) const {
  int64_t at = First(split) + begin;
  size_t shard = ShardAt(at);
  const int64_t id_bytes = index_.id_bytes();
  std::string ids;
  while (!out.empty()) {
    const auto count = std::min(out.size(), static_cast<size_t>(ends_[shard] - at));
    const int64_t first = ends_[shard] - index_.shards[shard].count;  // position of the shard's first token
    ids.resize(count * static_cast<size_t>(id_bytes));
    if (count > 0) WEFT_RETURN_IF_ERROR(shards_[shard].status());
    WEFT_RETURN_IF_ERROR(shards_[shard]->Read((at - first) * id_bytes, ids.size(), ids.data()));
    (id_bytes == 2 ? CopyIds<uint16_t> : CopyIds<uint32_t>)(ids.data(), out.first(count));
    out.remove_prefix(count);
    at = ends_[shard++];
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> TokenFiles::ReadStarts(int64_t document, int64_t count) const {
  std::vector<int64_t> starts(static_cast<size_t>(std::clamp<int64_t>(documents() - document, 0, count)));
  WEFT_RETURN_IF_ERROR(documents_.Read(document * kPositionBytes, starts.size() * kPositionBytes, starts.data()));
  return starts;
}

absl::Status TokenFiles::ReadCoarseStarts() {
  constexpr int64_t kMaxCoarse = 4096;  // reads when a folder is opened: a few milliseconds
  stride_ = documents() / kMaxCoarse + 1;
  for (int64_t document = 0; document < documents(); document += stride_) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> start, ReadStarts(document, 1));
    starts_.push_back(start[0]);
  }
  return absl::OkStatus();
}

absl::Status TokenFiles::Documents(DataSplit split, int64_t begin, absl::Span<int32_t> out) const {
  const int64_t first = First(split) + begin;
  // Binary search for the last document that begins at token `first` or before, first in memory, then in the file. It
  // is in low .. high - 1.
  const auto coarse = std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin();
  int64_t low = (coarse - 1) * stride_, high = std::min(coarse * stride_, documents());
  constexpr int64_t kBlock = 64;  // numbers that are read at once: as fast as one
  while (high - low > kBlock) {
    const int64_t middle = low + (high - low) / 2;
    WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> start, ReadStarts(middle, 1));
    (start[0] <= first ? low : high) = middle;
  }
  int64_t next = std::max<int64_t>(low, 0);  // the first document of the next block
  std::vector<int64_t> block;
  size_t at = 0;  // in the block, of the first document that begins after the token
  int32_t number = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t token = first + static_cast<int64_t>(i);
    while (true) {
      if (at == block.size() && next < documents()) {
        WEFT_ASSIGN_OR_RETURN(block, ReadStarts(next, kBlock));
        next += static_cast<int64_t>(block.size());
        at = 0;
      }
      if (at == block.size() || block[at] > token) break;
      if (block[at++] > first) ++number;
    }
    out[i] = number;
  }
  return absl::OkStatus();
}

std::string TokenFiles::Fingerprint() const { return Checksum(index_.ToJson()); }

}  // namespace weft
