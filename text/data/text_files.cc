#include "weft/text/data/text_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/text/data/corpus.h"

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

}  // namespace weft
