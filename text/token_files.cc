// The index gives the number of ids of each file, and so its size. A file of another size is an error when the folder
// is opened; other damage is found by Verify.
#include "weft/text/token_files.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "weft/core/checksum.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/text/load_tokenizer.h"

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

// Returns DataLoss unless the checksum of the file is `expected`.
absl::Status CheckBytes(const RandomAccessFile& file, const std::string& expected) {
  constexpr int64_t kBlock = int64_t{1} << 20;  // bytes that are read at once
  std::string block;
  Checksummer checksummer;
  for (int64_t begin = 0; begin < file.size(); begin += kBlock) {
    block.resize(static_cast<size_t>(std::min(kBlock, file.size() - begin)));
    WEFT_RETURN_IF_ERROR(file.Read(begin, block.size(), block.data()));
    checksummer.Add(block);
  }
  if (const std::string found = checksummer.Digest(); found != expected) {
    return absl::DataLossError(
        absl::StrCat(file.path(), ": its checksum is ", found, ", but ", kTokenIndexFile, " has ", expected));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ShardFile(size_t shard) { return absl::StrFormat("tokens-%05d.bin", shard); }

std::string TokenIndex::ToJson() const {
  Json json = {
      {"format", kFormat},        {"version", kVersion},
      {"vocabulary", vocabulary}, {"id_bytes", id_bytes()},
      {"tokenizer", tokenizer},   {"documents", {{"count", documents.count}, {"checksum", documents.checksum}}},
      {"shards", Json::array()}};
  for (const File& shard : shards) json["shards"].push_back({{"tokens", shard.count}, {"checksum", shard.checksum}});
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

absl::StatusOr<RandomAccessFile> TokenFiles::OpenFile(const std::string& name, int64_t count,
                                                      int64_t item_bytes) const {
  WEFT_ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(Path(name)));
  if (file.size() == count * item_bytes) return file;
  return InvalidArgument(Path(name), " has ", file.size(), " bytes, but ", kTokenIndexFile, " gives it ",
                         count * item_bytes);
}

absl::StatusOr<TokenFiles> TokenFiles::Open(const std::string& folder, MissingShards missing) {
  const std::string path = folder + "/" + kTokenIndexFile;
  WEFT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  WEFT_ASSIGN_OR_RETURN(TokenIndex index, Annotate(ToIndex(json), path));
  TokenFiles files(folder, std::move(index));
  int64_t end = 0;
  for (size_t i = 0; i < files.index_.shards.size(); ++i) {
    const int64_t count = files.index_.shards[i].count;
    absl::StatusOr<RandomAccessFile> shard = files.OpenFile(ShardFile(i), count, files.index_.id_bytes());
    const bool may_be_missing = missing == MissingShards::kAllow && absl::IsNotFound(shard.status());
    if (!shard.ok() && !may_be_missing) return shard.status();
    files.shards_.push_back(std::move(shard));
    files.ends_.push_back(end += count);
  }
  WEFT_ASSIGN_OR_RETURN(files.documents_, files.OpenFile(kDocumentsFile, files.documents(), kPositionBytes));
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
    WEFT_RETURN_IF_ERROR(CheckBytes(*shards_[i], index_.shards[i].checksum));
  }
  return CheckBytes(documents_, index_.documents.checksum);
}

int64_t TokenFiles::First(DataSplit split) const {
  const int64_t all = ends_.empty() ? 0 : ends_.back();
  return split == DataSplit::kTrain ? 0 : all - (all + 9) / 10;
}

int64_t TokenFiles::size(DataSplit split) const {
  const int64_t cut = First(DataSplit::kValidation);
  return split == DataSplit::kTrain ? cut : (ends_.empty() ? 0 : ends_.back()) - cut;
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
