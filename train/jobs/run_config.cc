#include "weft/train/jobs/run_config.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "weft/base/checksum.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/data/token_sources.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/train/jobs/job.h"
#include "weft/train/run/build_info.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Returns the checksum of a file, or of the files in a folder that decide what the folder's tokenizer and tokens are.
std::optional<std::string> ChecksumOf(const std::string& path) {
  if (!IsFolder(path)) {
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

constexpr const char* kMayDiffer[] = {"threads", "log_every"};

// Returns the first key whose value differs between `a` and `b`, or "" if none does. Searches the keys of `a` first. If
// both values are objects, returns the path of a key inside them, such as "model.n_layer". Sets `a_value` and
// `b_value`.
std::string FirstDifference(const Json& a, const Json& b, std::string* a_value, std::string* b_value) {
  for (const Json* keys : {&a, &b}) {
    for (const auto& [key, unused] : keys->items()) {
      const auto of_a = a.find(key), of_b = b.find(key);
      if (of_a != a.end() && of_b != b.end()) {
        if (*of_a == *of_b) continue;
        if (of_a->is_object() && of_b->is_object()) {
          return absl::StrCat(key, ".", FirstDifference(*of_a, *of_b, a_value, b_value));
        }
      }
      *a_value = of_a != a.end() ? of_a->dump() : "none";
      *b_value = of_b != b.end() ? of_b->dump() : "none";
      return key;
    }
  }
  return "";
}

}  // namespace

Json FileChecksums(const Hyperparameters& table, const std::string& run) {
  Json files = Json::object();
  const auto add = [&](const std::string& key, const std::optional<std::string>& checksum) {
    if (checksum) files[key] = *checksum;
  };
  for (const Hyperparameter& row : table) {
    if (!row.rules.is_path && !row.rules.is_path_list) continue;
    const std::string& path = *std::get<std::string*>(row.value);
    if (path.empty() || absl::c_linear_search(row.rules.words, path)) continue;
    add(row.key(), row.rules.is_path || Exists(path) ? ChecksumOf(path) : ChecksumOfList(path));
  }
  if (run.empty()) return files;
  for (const std::string& name : TokenizerFileNames()) add(name, ChecksumOf(absl::StrCat(run, "/", name)));
  return files;
}

std::string ChangedFiles(const Json& before, const Json& now) {
  const auto text = [](const Json& json, const std::string& key) {
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

Json DescribeTraining(const Json& config, const Hyperparameters& table, const std::string& data) {
  // Data come first: other data may also change the model, such as its vocabulary, and the cause should be reported.
  Json description = {{"build", BuildName()}, {"cpu", CpuFeatures()}, {kFilesKey, Json::object()}, {"data", data}};
  description.update(config);
  for (const Hyperparameter& row : table) {
    if ((row.rules.is_path || row.rules.is_path_list) && row.key() != "data") description.erase(row.key());
  }
  for (const char* const key : kMayDiffer) description.erase(key);
  description["data"] = data;  // in place of the path
  return description;
}

absl::Status CheckSameTraining(const Ranks& ranks, const Json& description) {
  if (ranks.size() == 1) return absl::OkStatus();
  const std::vector<std::string> texts = ranks.AllGather(JsonLine(description));
  WEFT_ASSIGN_OR_RETURN(const Json first, ParseJsonObject(texts[0]));
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    WEFT_ASSIGN_OR_RETURN(const Json other, ParseJsonObject(texts[rank]));
    std::string value_of_first, value;
    const std::string key = FirstDifference(first, other, &value_of_first, &value);
    if (key.empty()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", rank, " has ", key, " ", value, ", but rank 0 has ", value_of_first,
                     "; all ranks need the same version of Weft, CPU features, options and data"));
  }
  return absl::OkStatus();
}

}  // namespace weft
