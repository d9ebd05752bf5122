#include "weft/text/data/text_files.h"

#include <sys/wait.h>

#include <algorithm>
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

absl::StatusOr<std::string> ReadText(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::string text, ReadMaybeGzip(path));
  if (text.empty()) return InvalidArgument(path, ": the file is empty");
  WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(text), path));
  return text;
}

absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
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
        "the default text, the King James Bible, is not installed: run tools/setup (Debian package bible-kjv), or name "
        "a file as data");
  }
  WEFT_RETURN_IF_ERROR(Annotate(CheckUtf8(text), "the output of bible"));
  return text;
}

absl::StatusOr<std::vector<std::string>> ListTexts(const std::string& list) {
  std::vector<std::string> paths;
  const std::vector<std::string> named =
      Exists(list) ? std::vector{list} : std::vector<std::string>(absl::StrSplit(list, ','));
  for (const std::string& path : named) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
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
