// Threads take blocks of text in turn. Each thread counts the chunks of its blocks, and then splits each distinct chunk
// into words once: most chunks of a long text occur many times.
#include "weft/text/learn/count_words.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/base/status.h"
#include "weft/text/data/gzip.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

constexpr size_t kBlock = size_t{1} << 20;  // bytes: long against taking the lock, short against a file

using Counts = absl::flat_hash_map<std::string, int64_t>;

bool IsCutSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Reports whether a chunk may end before byte `i`, at least 1, of `text`.
bool MayCut(absl::string_view text, size_t i) {
  const auto follows_space = [&] { return IsSpace(CharacterAt(text, CharacterBegin(text, i - 1)).code_point); };
  return text[i - 1] == '\n' || (IsCutSpace(text[i]) && !follows_space());
}

struct Block {
  std::string text;
  std::string file;  // for errors, with the line at which the block begins
  size_t line = 1;
  size_t index = 0;  // of all blocks
};

// Reads the files in blocks that end where a chunk may end.
class BlockReader {
 public:
  explicit BlockReader(const std::vector<std::string>& paths) : paths_(paths) {}

  // Reads the next block. Returns false at the end of the last file.
  absl::StatusOr<bool> Next(Block* block) {
    block->text.clear();
    while (block->text.empty()) {
      if (!stream_.has_value()) {
        if (opened_ == paths_.size()) return false;
        WEFT_ASSIGN_OR_RETURN(stream_, FileStream::Open(paths_[opened_++]));
        line_ = 1;
      }
      WEFT_RETURN_IF_ERROR(ReadBlock(&block->text));
      block->file = stream_->name();
      if (ended_) stream_.reset();
    }
    block->index = blocks_++;
    block->line = line_;
    line_ += static_cast<size_t>(std::count(block->text.begin(), block->text.end(), '\n'));
    bytes_ += static_cast<int64_t>(block->text.size());
    return true;
  }

  int64_t bytes() const { return bytes_; }
  size_t blocks() const { return blocks_; }

 private:
  absl::Status ReadBlock(std::string* text) {
    text->swap(rest_);
    rest_.clear();
    ended_ = false;
    for (size_t searched = 1;;) {
      WEFT_ASSIGN_OR_RETURN(const size_t read, stream_->Append(kBlock, text));
      ended_ = read == 0;
      if (ended_) return absl::OkStatus();
      size_t cut = text->rfind('\n') + 1;  // 0 if there is no line end
      for (size_t i = text->size() - 1; cut == 0 && i >= searched; --i) {
        if (MayCut(*text, i)) cut = i;
      }
      if (cut > 0) {
        rest_ = text->substr(cut);
        text->resize(cut);
        return absl::OkStatus();
      }
      searched = text->size();
    }
  }

  const std::vector<std::string>& paths_;
  size_t opened_ = 0;
  std::optional<FileStream> stream_;
  std::string rest_;  // read, but after the end of the last block
  bool ended_ = false;
  size_t line_ = 1, blocks_ = 0;
  int64_t bytes_ = 0;
};

// Adds the chunks of `block` to `counts`. A text is UTF-8 if its chunks are, because they end at ASCII characters.
absl::Status CountChunks(const Block& block, Counts* counts) {
  const absl::string_view text = block.text;
  for (size_t begin = 0, end = 1; begin < text.size(); ++end) {
    if (end < text.size() && !MayCut(text, end)) continue;
    const absl::string_view chunk = text.substr(begin, end - begin);
    const auto [entry, added] = counts->try_emplace(chunk, 0);
    ++entry->second;
    begin = end;
    if (!added || CheckUtf8(chunk).ok()) continue;
    size_t line = block.line;
    for (const absl::string_view each : absl::StrSplit(text, '\n')) {
      WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(each), absl::StrCat(block.file, ", line ", line++)));
    }
  }
  return absl::OkStatus();
}

// The work that the threads share.
class Counter {
 public:
  Counter(const std::vector<std::string>& paths, SplitWords split) : reader_(paths), split_(split) {}

  void Run() {
    Counts chunks, words;
    for (Block block; Take(&block);) {
      // `split_` must not see the text that is not UTF-8.
      if (const absl::Status status = CountChunks(block, &chunks); !status.ok()) return Fail(block.index, status);
    }
    for (const auto& [chunk, count] : chunks) {
      split_(chunk, [&words, count = count](absl::string_view word) { words[word] += count; });
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (words_.empty()) return words_.swap(words);
    for (const auto& [word, count] : words) words_[word] += count;
  }

  absl::StatusOr<WordCounts> Result() {
    WEFT_RETURN_IF_ERROR(status_);
    WordCounts result = {.bytes = reader_.bytes()};
    result.words.assign(words_.begin(), words_.end());
    std::sort(result.words.begin(), result.words.end());
    return result;
  }

 private:
  bool Take(Block* block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return false;
    const absl::StatusOr<bool> read = reader_.Next(block);
    if (!read.ok()) SetError(reader_.blocks(), read.status());
    return read.ok() && *read;
  }
  void Fail(size_t block, const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    SetError(block, status);
  }
  // Keeps the first error in the order of the blocks, which is the same for any number of threads.
  void SetError(size_t block, const absl::Status& status) {
    if (!status_.ok() && block > failed_) return;
    status_ = status;
    failed_ = block;
  }

  std::mutex mutex_;
  BlockReader reader_;
  SplitWords split_;
  Counts words_;
  absl::Status status_;
  size_t failed_ = 0;  // the block that `status_` is about
};

}  // namespace

absl::StatusOr<WordCounts> CountWords(const std::vector<std::string>& paths, SplitWords split, int threads) {
  Counter counter(paths, split);
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back([&counter] { counter.Run(); });
  counter.Run();
  for (std::thread& thread : others) thread.join();
  return counter.Result();
}

}  // namespace weft
