#include "weft/train/jobs/run_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "weft/core/checksum.h"
#include "weft/core/file.h"
#include "weft/text/load_tokenizer.h"
#include "weft/text/token_sources.h"
#include "weft/train/jobs/job.h"

namespace weft {
namespace {

// Returns the checksum of a file, or of the files in a folder that decide what the folder's tokenizer and tokens are.
std::optional<std::string> ChecksumOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    const absl::StatusOr<std::string> checksum = ChecksumOfFile(path);
    return checksum.ok() ? std::optional(*checksum) : std::nullopt;
  }
  std::vector<std::string> names = TokenizerFileNames();
  names.emplace_back("index.json");
  Checksummer all;
  bool any = false;
  for (const std::string& name : names) {
    const absl::StatusOr<std::string> checksum = ChecksumOfFile(absl::StrCat(path, "/", name));
    if (!checksum.ok()) continue;
    all.Add(absl::StrCat(name, "\n", *checksum, "\n"));
    any = true;
  }
  return any ? std::optional(all.Digest()) : std::nullopt;
}

// Returns a checksum of `list`, "FOLDER:WEIGHT,FOLDER:WEIGHT", which covers the text of the list and the folders'
// files.
std::optional<std::string> ChecksumOfList(const std::string& list) {
  Checksummer all;
  all.Add(list);
  for (const std::string& folder : TokenSources::Folders(list)) {
    const std::optional<std::string> checksum = ChecksumOf(folder);
    if (!checksum) return std::nullopt;
    all.Add(absl::StrCat("\n", *checksum));
  }
  return all.Digest();
}

}  // namespace

nlohmann::ordered_json FileChecksums(const Hyperparameters& table, const std::string& run) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  const auto add = [&](const std::string& key, const std::string& path) {
    if (const std::optional<std::string> checksum = ChecksumOf(path)) files[key] = *checksum;
  };
  for (const Hyperparameter& row : table) {
    if (!row.rules.is_path && !row.rules.is_path_list) continue;
    const std::string& path = *std::get<std::string*>(row.value);
    if (path.empty() || absl::c_linear_search(row.rules.words, path)) continue;
    if (row.rules.is_path || Exists(path)) {
      add(row.key(), path);
    } else if (const std::optional<std::string> checksum = ChecksumOfList(path)) {
      files[row.key()] = *checksum;
    }
  }
  if (run.empty()) return files;
  for (const std::string& name : TokenizerFileNames()) add(name, absl::StrCat(run, "/", name));
  return files;
}

std::string ChangedFiles(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now) {
  const auto text = [](const nlohmann::ordered_json& json, const std::string& key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : "";
  };
  std::string changed;
  const auto files = before.find(kFilesKey), files_now = now.find(kFilesKey);
  if (files == before.end() || files_now == now.end() || !files->is_object()) return changed;
  for (const auto& [key, checksum] : files->items()) {
    const std::string checksum_now = text(*files_now, key);
    if (checksum_now.empty() || checksum == checksum_now) continue;
    const std::string path = text(before, key), path_now = text(now, key);
    absl::StrAppend(&changed, changed.empty() ? "" : "; ");
    if (path == path_now) {
      absl::StrAppend(&changed, path.empty() ? key : absl::StrCat(key, ": ", path), " has changed");
    } else {
      absl::StrAppend(&changed, key, ": ", path_now, " differs from ", path, " as it was");
    }
  }
  return changed;
}

}  // namespace weft
