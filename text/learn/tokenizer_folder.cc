// A folder has one tokenizer: LoadTokenizer takes the first kind of file that it finds there, so others must go.
#include "weft/text/learn/tokenizer_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/base/status.h"

namespace weft {

namespace fs = std::filesystem;

absl::Status CheckTokenizerFolder(const std::string& folder, bool overwrite) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (!fs::exists(status)) {
    fs::path ancestor = fs::absolute(folder, error);
    while (!fs::exists(ancestor, error) && ancestor.has_relative_path()) ancestor = ancestor.parent_path();
    return Annotate(CheckWritable((ancestor / "tokenizer").string()), "out");
  }
  if (!fs::is_directory(status)) return absl::AlreadyExistsError(absl::StrCat("out: ", folder, " is not a folder"));
  const std::vector<std::string> known = TokenizerFileNames();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!overwrite) {
      return absl::AlreadyExistsError(
          absl::StrCat("out: ", folder, " has files already, such as ", name, "; overwrite replaces a tokenizer"));
    }
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return absl::AlreadyExistsError(
          absl::StrCat("out: ", folder, " has ", name, ", which is not a file of a tokenizer"));
    }
  }
  if (error) return SystemStatus("read", folder, error.value());
  return Annotate(CheckWritable((fs::path(folder) / "tokenizer").string()), "out");
}

absl::Status WriteTokenizerFolder(const std::string& folder, const NamedContents& file) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return SystemStatus("create", folder, error.value());
  WEFT_RETURN_IF_ERROR(WriteFile((fs::path(folder) / file.name).string(), {file.contents}));
  for (const std::string& name : TokenizerFileNames()) {
    const fs::path other = fs::path(folder) / name;
    if (name != file.name) fs::remove(other, error);
    if (error) return SystemStatus("remove", other.string(), error.value());
  }
  WEFT_RETURN_IF_ERROR(SyncFolder(folder));
  return SyncParent(folder);
}

}  // namespace weft
