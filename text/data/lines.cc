#include "weft/text/data/lines.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/text/data/gzip.h"

namespace weft {
namespace {

// Appends the ids of the lines to `encoded`. If a line cannot be encoded, stops there and returns the line's error.
absl::Status Encode(const TextLines& lines, LineEncoder encode, std::vector<TokenIds>* encoded) {
  for (size_t i = 0; i < lines.lines.size(); ++i) {
    absl::StatusOr<TokenIds> ids = encode(lines.lines[i]);
    if (!ids.ok()) return Annotate(ids.status(), lines.Location(i));
    encoded->push_back(*std::move(ids));
  }
  return absl::OkStatus();
}

}  // namespace

std::string TextLines::Location(size_t index) const {
  return absl::StrCat(path, ", line ", numbers.empty() ? index + 1 : numbers[index]);
}

void TextLines::Take(const TextLines& from, size_t index) {
  lines.push_back(from.lines[index]);
  numbers.push_back(from.numbers.empty() ? index + 1 : from.numbers[index]);
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
  const absl::string_view line = absl::string_view(buffer_).substr(begin_, end - begin_);
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

}  // namespace weft
