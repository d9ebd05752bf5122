// Files are read whole. Standard input is read line by line, so that another program can wait for each answer.
#include "weft/apps/lines.h"

#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/apps/flags.h"
#include "weft/core/status.h"
#include "weft/text/gzip.h"

namespace weft {
namespace {

using Function = std::function<absl::Status(absl::Span<const Line>)>;

// Returns the line without a "\r" at its end, which is left of "\r\n".
std::string WithoutReturn(absl::string_view line) { return std::string(absl::StripSuffix(line, "\r")); }

// The lines of standard input. Reading a line waits for no more input than that line.
class InputLines {
 public:
  // Waits for the next line. Returns false at the end of the input.
  absl::StatusOr<bool> Next(std::string* line) {
    size_t end = 0;
    while ((end = buffer_.find('\n', begin_)) == std::string::npos) {
      WEFT_ASSIGN_OR_RETURN(const bool more, ReadMore());
      if (more) continue;
      *line = buffer_.substr(begin_);
      begin_ = buffer_.size();
      return !line->empty();
    }
    *line = buffer_.substr(begin_, end - begin_);
    begin_ = end + 1;
    return true;
  }
  // Reports whether Next would return without waiting: with a complete line, the end, or an error.
  bool Ready() {
    while (buffer_.find('\n', begin_) == std::string::npos) {
      pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      if (poll(&input, 1, /*timeout=*/0) <= 0) return false;
      const absl::StatusOr<bool> more = ReadMore();
      if (!more.ok() || !*more) break;
    }
    return true;
  }

 private:
  absl::StatusOr<bool> ReadMore() {
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (ended_) return false;
    char bytes[1 << 16];
    while (true) {
      const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return absl::UnavailableError("standard input could not be read");
      buffer_.append(bytes, static_cast<size_t>(count));
      ended_ = count == 0;
      return !ended_;
    }
  }

  std::string buffer_;
  size_t begin_ = 0;    // the next line's first byte in buffer_
  bool ended_ = false;  // remembered, because a terminal can give more input after its end
};

absl::Status ReadStandardInput(size_t max_lines, const Function& batch) {
  InputLines input;
  std::vector<Line> lines;
  int64_t number = 0;
  for (std::string text;;) {
    WEFT_ASSIGN_OR_RETURN(const bool more, input.Next(&text));
    if (more) lines.push_back({WithoutReturn(text), absl::StrCat("standard input, line ", ++number)});
    if (!lines.empty() && (!more || lines.size() == max_lines || !input.Ready())) {
      WEFT_RETURN_IF_ERROR(Failure(batch(lines)));
      std::fflush(stdout);
      lines.clear();
    }
    if (!more) return absl::OkStatus();
  }
}

absl::Status ReadFileInBatches(const std::string& path, size_t max_lines, const Function& batch) {
  const absl::StatusOr<std::string> contents = ReadMaybeGzip(path);
  if (!contents.ok()) return UsageError(contents.status());
  if (contents->empty()) return absl::OkStatus();
  int64_t number = 0;
  std::vector<Line> lines;
  for (const absl::string_view text : absl::StrSplit(absl::StripSuffix(*contents, "\n"), '\n')) {
    lines.push_back({WithoutReturn(text), absl::StrCat(path, ", line ", ++number)});
    if (lines.size() < max_lines) continue;
    WEFT_RETURN_IF_ERROR(batch(lines));
    lines.clear();
  }
  return lines.empty() ? absl::OkStatus() : batch(lines);
}

}  // namespace

void AddFiles(CLI::App* app, std::vector<std::string>* files) {
  app->add_option("files", *files, "files of text; without any, standard input is read")
      ->type_name("FILE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

absl::Status ForEachBatch(const std::vector<std::string>& files, size_t max_lines, const Function& batch) {
  if (files.empty()) return ReadStandardInput(max_lines, batch);
  for (const std::string& path : files) WEFT_RETURN_IF_ERROR(ReadFileInBatches(path, max_lines, batch));
  return absl::OkStatus();
}

absl::Status ForEachLine(const std::vector<std::string>& files,
                         const std::function<absl::Status(absl::string_view)>& line) {
  return ForEachBatch(files, /*max_lines=*/1,
                      [&](absl::Span<const Line> lines) { return Annotate(line(lines[0].text), lines[0].place); });
}

absl::Status AnswerLines(absl::Span<const Line> lines,
                         const std::function<absl::StatusOr<TokenIds>(absl::string_view line)>& encode,
                         const std::function<absl::Status(absl::Span<const TokenIds>)>& answer) {
  std::vector<TokenIds> texts;
  absl::Status error;
  for (const Line& line : lines) {
    absl::StatusOr<TokenIds> ids = encode(line.text);
    error = Annotate(ids.status(), line.place);
    if (!error.ok()) break;
    texts.push_back(*std::move(ids));
  }
  WEFT_RETURN_IF_ERROR(Failure(answer(texts)));
  return error;
}

std::string JsonArray(absl::Span<const float> numbers) {
  std::string text = "[";
  for (const float x : numbers) absl::StrAppendFormat(&text, "%s%.7g", text.size() == 1 ? "" : ",", x);
  return text + "]";
}

}  // namespace weft
