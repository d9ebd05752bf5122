// A folder holds a run of kind NAME if the "command" in its config.json is "train NAME". A lock on the folder excludes
// other processes.
#include "weft/train/run/run_directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/run_folder.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/train/run/event_file.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "config.json";
constexpr const char* kWritten[] = {"checkpoints",
                                    "metrics.jsonl",
                                    kLastWeights,
                                    kEmaWeights,
                                    kBestWeights,
                                    "sample.txt",
                                    "insights.jsonl",
                                    "preprocessor_config.json",
                                    kGenerationConfig,
                                    "puzzles.png",
                                    kEventFile,
                                    "adapter_config.json",
                                    "adapter_model.safetensors"};

std::string DefaultPath(const std::string& name, int64_t number) { return absl::StrCat("runs/", name, "-", number); }

// Returns the highest N below 2^31 among the folders runs/NAME-N, or 0 if there is none.
int64_t HighestNumber(const std::string& name) {
  int64_t highest = 0;
  for (const std::string& folder : NamesIn("runs").value_or(std::vector<std::string>())) {
    int32_t number;
    if (absl::StartsWith(folder, name + "-") && absl::SimpleAtoi(folder.substr(name.size() + 1), &number)) {
      highest = std::max<int64_t>(highest, number);
    }
  }
  return highest;
}

// Reports whether WriteFile may have left the file `name`: it ends with ".PID.tmp".
bool IsTemporary(absl::string_view name) {
  int64_t process;
  const size_t dot = absl::ConsumeSuffix(&name, kTemporarySuffix) ? name.rfind('.') : name.npos;
  return dot != name.npos && absl::SimpleAtoi(name.substr(dot + 1), &process);
}

// Reports whether a folder is missing, or has no files except temporary ones.
absl::StatusOr<bool> IsEmpty(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  return std::all_of(names.begin(), names.end(), IsTemporary);
}

}  // namespace

RunDirectory::RunDirectory(const RunDirectoryOptions& options)
    : options_(options), path_(options.out), config_(std::make_shared<nlohmann::ordered_json>()) {}

absl::StatusOr<RunDirectory> RunDirectory::Find(const RunDirectoryOptions& options) {
  const Ranks& ranks = options.ranks;
  const auto flag = [](bool on) { return on ? "true" : "false"; };
  WEFT_RETURN_IF_ERROR(ranks.CheckEqual("command", absl::StrCat("train ", options.name)));
  WEFT_RETURN_IF_ERROR(ranks.CheckEqual("resume", flag(options.resume)));
  WEFT_RETURN_IF_ERROR(ranks.CheckEqual("overwrite", flag(options.overwrite)));
  RunDirectory run(options);
  WEFT_ASSIGN_OR_RETURN(run.path_, ResultOfFirst(ranks, [&]() -> absl::StatusOr<std::string> {
                          WEFT_RETURN_IF_ERROR(run.FindAlone());
                          return run.path_;
                        }));
  if (!options.resume) return run;
  absl::Status read;
  if (!ranks.first()) {
    absl::StatusOr<RunDirectory> of_first = Read(run.path_);
    read = of_first.status();
    if (read.ok()) run.config_ = std::move(of_first->config_);
  }
  WEFT_RETURN_IF_ERROR(AllAgree(ranks, read));
  return run;
}

absl::Status RunDirectory::FindAlone() {
  if (options_.resume && options_.overwrite) {
    return InvalidArgument("resume: it excludes overwrite");
  }
  if (options_.overwrite && options_.out.empty()) {
    return InvalidArgument("overwrite: it needs out, the folder of the run to replace");
  }
  if (path_.empty() && options_.resume) {
    if (const int64_t highest = HighestNumber(options_.name); highest > 0) {
      path_ = DefaultPath(options_.name, highest);
    }
  }
  if (!path_.empty()) WEFT_RETURN_IF_ERROR(Inspect());
  if (options_.resume && !holds_run_) {
    return absl::NotFoundError(
        absl::StrCat(path_.empty() ? absl::StrCat("runs/", options_.name, "-N") : path_, ": no run to resume"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunDirectory> RunDirectory::Read(const std::string& folder) {
  RunDirectory run({.out = folder});
  WEFT_ASSIGN_OR_RETURN(nlohmann::ordered_json config, ReadJsonFile(run.File(kConfig)));
  run.config_ = std::make_shared<nlohmann::ordered_json>(std::move(config));
  return run;
}

absl::Status RunDirectory::Inspect() {
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  if (!fs::exists(status)) {
    if (status.type() == fs::file_type::not_found) return absl::OkStatus();
    return SystemStatus("read", path_, error.value());
  }
  if (!fs::is_directory(status)) return absl::FailedPreconditionError(absl::StrCat(path_, " is not a folder"));
  WEFT_ASSIGN_OR_RETURN(const bool empty, IsEmpty(path_));
  exists_ = true;
  if (empty) return Lock();
  if (absl::StatusOr<nlohmann::ordered_json> config = ReadJsonFile(File(kConfig)); config.ok()) {
    config_ = std::make_shared<nlohmann::ordered_json>(*std::move(config));
  } else if (!absl::IsNotFound(config.status())) {
    return config.status();
  }
  if (!IsRunConfig(*config_, options_.name)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " is not empty and holds no run of train ", options_.name, "; choose another folder"));
  }
  holds_run_ = true;
  if (options_.resume || options_.overwrite) return Lock();
  return absl::AlreadyExistsError(absl::StrCat(path_, " holds a run"));
}

std::string RunDirectory::File(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

absl::Status RunDirectory::MakeFolder() {
  std::error_code error;
  if (!path_.empty()) {
    fs::create_directories(path_, error);
    if (error) return SystemStatus("create", path_, error.value());
    WEFT_RETURN_IF_ERROR(Lock());
    WEFT_ASSIGN_OR_RETURN(const bool empty, IsEmpty(path_));
    if (!empty) return absl::AlreadyExistsError(path_ + " holds another run by now");
    return SyncParent(path_);
  }
  fs::create_directories("runs", error);
  if (error) return SystemStatus("create", "runs", error.value());
  // Another process may take a number first, so this run uses only a folder that this call has made.
  for (int64_t number = HighestNumber(options_.name) + 1;; ++number) {
    const std::string path = DefaultPath(options_.name, number);
    const bool made = fs::create_directory(path, error);
    if (error && error != std::errc::file_exists) return SystemStatus("create", path, error.value());
    if (!made) continue;
    path_ = path;
    WEFT_RETURN_IF_ERROR(Lock());
    return SyncParent(path_);
  }
}

absl::Status RunDirectory::Lock() {
  WEFT_ASSIGN_OR_RETURN(lock_, LockFolder(path_));
  return absl::OkStatus();
}

// Removes temporary files that a killed process left. If `overwrite` is set, also removes the old run's files except
// config.json, which marks the folder as a run until config.json is replaced.
absl::Status RunDirectory::Clear() const {
  std::vector<std::string> names;
  if (options_.overwrite) {
    names = TokenizerFileNames();
    names.insert(names.end(), std::begin(kWritten), std::end(kWritten));
  }
  for (const std::string& name : NamesIn(path_).value_or(std::vector<std::string>())) {
    if (IsTemporary(name)) names.push_back(name);
  }
  std::error_code error;
  for (const std::string& name : names) {
    fs::remove_all(File(name), error);
    if (error) return SystemStatus("remove", File(name), error.value());
  }
  return absl::OkStatus();
}

absl::Status RunDirectory::CheckStillThere() const {
  struct stat locked, named;
  if (fstat(lock_.get(), &locked) != 0) return SystemStatus("find", path_, errno);
  if (stat(path_.c_str(), &named) != 0) {
    if (errno != ENOENT) return SystemStatus("find", path_, errno);
    return absl::FailedPreconditionError(absl::StrCat(path_, ": the run's folder was removed or renamed"));
  }
  if (named.st_dev == locked.st_dev && named.st_ino == locked.st_ino) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path_, ": another folder has this name now; the run's folder was removed or renamed"));
}

absl::Status RunDirectory::WriteKept(const std::string& name, absl::string_view contents) {
  WEFT_RETURN_IF_ERROR(WriteFile(File(name), {contents}));
  kept_[name] = std::string(contents);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> RunDirectory::RestoreFiles() const {
  WEFT_RETURN_IF_ERROR(CheckStillThere());
  std::vector<std::string> restored;
  for (const auto& [name, contents] : kept_) {
    if (Exists(File(name))) continue;
    WEFT_RETURN_IF_ERROR(WriteFile(File(name), {contents}));
    restored.push_back(name);
  }
  return restored;
}

absl::Status RunDirectory::Begin(const nlohmann::ordered_json& config) {
  WEFT_ASSIGN_OR_RETURN(path_, ResultOfFirst(options_.ranks, [&]() -> absl::StatusOr<std::string> {
                          if (!exists_) WEFT_RETURN_IF_ERROR(MakeFolder());
                          WEFT_RETURN_IF_ERROR(Clear());
                          // The configuration of an overwritten run does not count.
                          if (!options_.resume) config_ = std::make_shared<nlohmann::ordered_json>();
                          return path_;
                        }));
  return SetConfig(config);
}

absl::Status RunDirectory::SetConfig(const nlohmann::ordered_json& config) {
  WEFT_RETURN_IF_ERROR(OnFirst(options_.ranks, [&]() -> absl::Status {
    const std::string text = config.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    if (config != *config_) return WriteKept(kConfig, text);
    kept_[kConfig] = text;
    return absl::OkStatus();
  }));
  config_ = std::make_shared<nlohmann::ordered_json>(config);
  return absl::OkStatus();
}

}  // namespace weft
