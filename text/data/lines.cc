#include "weft/text/data/lines.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/text/data/gzip.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// Appends the ids of the lines to `encoded`. If a line cannot be encoded, stops there and returns the line's error.
absl::Status Encode(const TextLines& lines, LineEncoder encode, std::vector<TokenIds>* encoded) {
  for (size_t i = 0; i < lines.lines.size(); ++i) {
    absl::StatusOr<TokenIds> ids = encode(lines.lines[i]);
    if (!ids.ok()) return Annotate(ids.status(), lines.Location(i));
    encoded->push_back(*std::move(ids));
  }
  return absl::OkStatus();
}

absl::Status AddFolder(const std::string& folder, std::vector<std::string>* paths) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->is_regular_file(error) || absl::StartsWith(entry->path().filename().string(), ".")) continue;
    found.push_back(entry->path().string());
  }
  WEFT_RETURN_IF_ERROR(SystemStatus("list", folder, error.value()));
  if (found.empty()) return InvalidArgument(folder, ": the folder has no files");
  std::sort(found.begin(), found.end());
  paths->insert(paths->end(), found.begin(), found.end());
  return absl::OkStatus();
}

}  // namespace

std::string TextLines::Location(size_t index) const {
  return absl::StrCat(path, ", line ", numbers.empty() ? index + 1 : numbers[index]);
}

LineReader::LineReader(std::vector<std::string> paths)
    : paths_(std::move(paths)), path_("standard input"), ended_(!paths_.empty()) {}

absl::StatusOr<TextLines> LineReader::Next(size_t max_lines) {
  while (true) {
    TextLines next = {.path = path_};
    while (next.lines.size() < max_lines && (next.lines.empty() || Ready())) {
      absl::StatusOr<std::optional<std::string>> line = NextLine();
      if (!line.ok() && !next.lines.empty()) return next;  // the next call returns the error
      if (!line.ok()) return line.status();
      if (!line->has_value()) break;
      next.lines.push_back(**std::move(line));
      next.numbers.push_back(++number_);
    }
    if (!next.lines.empty() || opened_ == paths_.size()) return next;
    path_ = paths_[opened_++];
    begin_ = searched_ = number_ = 0;
    ended_ = path_ != kStandardInput;
    if (ended_) {
      WEFT_ASSIGN_OR_RETURN(buffer_, ReadMaybeGzip(path_));
    } else {
      path_ = "standard input";
      buffer_.clear();
    }
  }
}

// Reports whether buffer_ has the end of the next line. Bytes that were searched before are not searched again, since a
// line may be long.
bool LineReader::HasLine() {
  searched_ = std::min(buffer_.find('\n', std::max(begin_, searched_)), buffer_.size());
  return searched_ < buffer_.size();
}

// Waits for the next line. Returns none at the end.
absl::StatusOr<std::optional<std::string>> LineReader::NextLine() {
  while (!HasLine() && !ended_) {
    if (buffer_.size() - begin_ > ReadLimit()) return BeyondReadLimit(TextLines{.path = path_}.Location(number_));
    WEFT_RETURN_IF_ERROR(ReadMore());
  }
  if (begin_ == buffer_.size()) return std::optional<std::string>();
  const size_t end = searched_;
  const bool of_input = opened_ == 0 || paths_[opened_ - 1] == kStandardInput;
  if (of_input && end - begin_ > ReadLimit()) return BeyondReadLimit(TextLines{.path = path_}.Location(number_));
  absl::string_view line = absl::string_view(buffer_).substr(begin_, end - begin_);
  if (number_ == 0) absl::ConsumePrefix(&line, kByteOrderMark);
  begin_ = std::min(end + 1, buffer_.size());
  return std::optional<std::string>(absl::StripSuffix(line, "\r"));
}

// Reports whether NextLine would return without waiting: with a complete line, the end, or an error.
bool LineReader::Ready() {
  while (!ended_ && !HasLine() && buffer_.size() - begin_ <= ReadLimit()) {
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&input, 1, /*timeout=*/0) <= 0) return false;
    if (!ReadMore().ok()) break;
  }
  return true;
}

// Appends the available bytes of standard input to `buffer_`. If there are none, waits for some.
absl::Status LineReader::ReadMore() {
  buffer_.erase(0, begin_);
  searched_ -= std::min(searched_, begin_);
  begin_ = 0;
  char bytes[1 << 16];
  ssize_t count;
  do {
    count = read(STDIN_FILENO, bytes, sizeof bytes);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return absl::UnavailableError("standard input could not be read");
  buffer_.append(bytes, static_cast<size_t>(count));
  ended_ = count == 0;
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::string text, ReadMaybeGzip(path));
  if (text.empty()) return InvalidArgument(path, ": the file is empty");
  WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(text), path));
  return text;
}

absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  std::vector<std::string> lines;
  const absl::string_view all = absl::StripPrefix(text, kByteOrderMark);
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(all, "\n"), '\n')) {
    lines.emplace_back(absl::StripSuffix(line, "\r"));
  }
  return lines;
}

absl::StatusOr<std::string> ReadKingJamesBible() {
  std::string text;
  std::FILE* pipe = popen("bible -f gen1:1-rev22:21 2>/dev/null", "r");
  if (pipe == nullptr) return absl::InternalError("can't start a process to read the King James Bible");
  char buffer[1 << 16];
  for (size_t size; (size = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, size);
  const int status = pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || text.empty()) {
    return absl::NotFoundError(
        "the default text, the King James Bible, is not installed: install Debian's package bible-kjv, as tools/setup "
        "does, or name a file as data");
  }
  WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(text), "the output of bible"));
  return text;
}

absl::StatusOr<std::vector<std::string>> ListTexts(const std::string& list) {
  std::vector<std::string> paths;
  const std::vector<std::string> named =
      Exists(list) ? std::vector{list} : std::vector<std::string>(absl::StrSplit(list, ','));
  for (const std::string& path : named) {
    if (IsFolder(path)) {
      WEFT_RETURN_IF_ERROR(AddFolder(path, &paths));
    } else {
      paths.push_back(path);
    }
  }
  return paths;
}

absl::StatusOr<std::vector<TextFile>> ReadTexts(const std::string& list) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListTexts(list));
  std::vector<TextFile> texts;
  for (const std::string& path : paths) {
    WEFT_ASSIGN_OR_RETURN(std::string text, ReadText(path));
    texts.push_back({path, std::move(text)});
  }
  return texts;
}

absl::StatusOr<std::vector<TokenIds>> EncodeAll(const TextLines& lines, LineEncoder encode) {
  std::vector<TokenIds> all;
  WEFT_RETURN_IF_ERROR(Encode(lines, encode, &all));
  return all;
}

absl::Status EncodeLines(std::vector<std::string> paths, size_t max_lines, LineEncoder encode,
                         absl::FunctionRef<absl::Status(const TextLines&, absl::Span<const TokenIds>)> take) {
  LineReader reader(std::move(paths));
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const TextLines lines, reader.Next(max_lines));
    if (lines.lines.empty()) return absl::OkStatus();
    std::vector<TokenIds> encoded;
    const absl::Status error = Encode(lines, encode, &encoded);
    WEFT_RETURN_IF_ERROR(take(lines, encoded));
    WEFT_RETURN_IF_ERROR(error);
  }
}

absl::StatusOr<std::vector<int32_t>> EncodeText(const std::string& path, absl::string_view text,
                                                const Tokenizer& tokenizer) {
  std::vector<int32_t> tokens;
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::StatusOr<std::vector<int32_t>> ids = tokenizer.Encode(absl::StripSuffix(line, "\r"));
    if (!ids.ok()) return Annotate(ids.status(), absl::StrCat(path, ", line ", number));
    tokens.insert(tokens.end(), ids->begin(), ids->end());
  }
  return tokens;
}

}  // namespace weft
