#include "weft/train/run_directory.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/status.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "config.json";
constexpr const char* kWritten[] = {"checkpoints", "metrics.jsonl", "model.safetensors", "tokenizer.json",
                                    "sample.txt"};

std::string DefaultPath(const std::string& name, int64_t number) { return absl::StrCat("runs/", name, "-", number); }

// The highest N of a folder runs/NAME-N; 0 if there is none.
int64_t HighestNumber(const std::string& name) {
  int64_t highest = 0;
  std::error_code error;
  for (fs::directory_iterator i("runs", error), end; !error && i != end; i.increment(error)) {
    const std::string folder = i->path().filename().string();
    int64_t number;
    if (absl::StartsWith(folder, name + "-") && absl::SimpleAtoi(folder.substr(name.size() + 1), &number)) {
      highest = std::max(highest, number);
    }
  }
  return highest;
}

absl::Status SystemError(absl::string_view action, const std::string& path, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat("can't ", action, " ", path, ": ", error.message()));
}

}  // namespace

bool IsRunConfig(const nlohmann::ordered_json& config, absl::string_view name) {
  return config.is_object() && config.contains("command") && config["command"] == absl::StrCat("train ", name);
}

absl::StatusOr<RunDirectory> RunDirectory::Find(const RunDirectoryOptions& options) {
  if (options.resume && options.overwrite) {
    return absl::InvalidArgumentError("--resume and --overwrite exclude each other");
  }
  RunDirectory run(options);
  if (run.path_.empty() && options.resume) {
    if (const int64_t highest = HighestNumber(options.name); highest > 0) {
      run.path_ = DefaultPath(options.name, highest);
    }
  }
  if (!run.path_.empty()) WEFT_RETURN_IF_ERROR(run.Inspect());
  return run;
}

absl::Status RunDirectory::Inspect() {
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  if (!fs::exists(status)) {
    if (status.type() == fs::file_type::not_found) return absl::OkStatus();
    return SystemError("read", path_, error);
  }
  if (!fs::is_directory(status)) return absl::FailedPreconditionError(absl::StrCat(path_, " is not a folder"));
  const bool empty = fs::is_empty(path_, error);
  if (error) return SystemError("read", path_, error);
  exists_ = true;
  if (empty) return absl::OkStatus();
  if (const absl::StatusOr<std::string> contents = ReadFile(File(kConfig)); contents.ok()) {
    config_ = nlohmann::ordered_json::parse(*contents, nullptr, /*allow_exceptions=*/false);
  }
  if (!IsRunConfig(config_, options_.name)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " is not empty and holds no run of train ", options_.name, "; choose another --out"));
  }
  holds_run_ = true;
  if (options_.resume || options_.overwrite) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(path_, " holds a run: pass --resume to continue it, --overwrite to replace it, or another --out"));
}

std::string RunDirectory::File(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

absl::Status RunDirectory::MakeFolder() {
  std::error_code error;
  if (!path_.empty()) {
    fs::create_directories(path_, error);
    return error ? SystemError("create", path_, error) : absl::OkStatus();
  }
  fs::create_directories("runs", error);
  if (error) return SystemError("create", "runs", error);
  // Another run may take a number first: a folder that this call didn't make isn't ours.
  for (int64_t number = HighestNumber(options_.name) + 1;; ++number) {
    const std::string path = DefaultPath(options_.name, number);
    const bool made = fs::create_directory(path, error);
    if (error && error != std::errc::file_exists) return SystemError("create", path, error);
    if (!made) continue;
    path_ = path;
    return absl::OkStatus();
  }
}

absl::Status RunDirectory::Begin(const nlohmann::ordered_json& config) {
  if (!exists_) WEFT_RETURN_IF_ERROR(MakeFolder());
  if (options_.overwrite) {  // config.json stays until it is replaced: it shows that the folder is a run
    for (const char* name : kWritten) {
      std::error_code error;
      fs::remove_all(File(name), error);
      if (error) return SystemError("remove", File(name), error);
    }
  }
  if (options_.resume && holds_run_ && config == config_) return absl::OkStatus();
  config_ = config;
  return WriteFile(File(kConfig), {config.dump(2), "\n"});
}

}  // namespace weft
