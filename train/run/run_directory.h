// A RunDirectory is the folder of a training run. It holds config.json, metrics.jsonl, checkpoints/, model.safetensors,
// and files of the job, such as tokenizer.json.
//
// If several ranks share a training, rank 0 chooses, locks and changes the folder. The others only read it. Find, Begin
// and SetConfig then wait for all ranks, and return the same result on each.
//
//   WEFT_ASSIGN_OR_RETURN(RunDirectory run, RunDirectory::Find({.name = "gpt", .resume = true}));  // changes no file
//   ...                                       // continue from run.config()
//   WEFT_RETURN_IF_ERROR(run.Begin(config));  // makes, empties or keeps the folder
#ifndef WEFT_TRAIN_RUN_RUN_DIRECTORY_H_
#define WEFT_TRAIN_RUN_RUN_DIRECTORY_H_

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/base/file.h"
#include "weft/distributed/ranks.h"

namespace weft {

struct RunDirectoryOptions {
  std::string name;  // the kind of run: "gpt"
  std::string out;   // the folder; empty: runs/NAME-N with the next free N, or the highest N to resume
  bool resume = false, overwrite = false;
  Ranks ranks = {};
};

class RunDirectory {
 public:
  // Chooses the folder and checks that it may be used. If the folder exists, locks it against other processes. Errors:
  // AlreadyExists: the folder holds a run, and neither `resume` nor `overwrite` is set.
  // NotFound: there is no run to resume.
  // FailedPrecondition: another process uses the folder, or the folder has files but no run of this kind. Temporary
  // files do not count: a program that was killed while it began a run left them.
  // InvalidArgument: `overwrite` is set together with `resume` or without `out`.
  // Several ranks must give the same options. Only `out` may differ: all ranks use the folder of rank 0.
  static absl::StatusOr<RunDirectory> Find(const RunDirectoryOptions& options);

  // Opens the folder of a run to read its configuration: changes and locks nothing. Returns an error if `folder` has no
  // config.json that is a JSON object.
  static absl::StatusOr<RunDirectory> Read(const std::string& folder);

  const std::string& path() const { return path_; }  // "" until Begin if the default folder is new
  std::string File(absl::string_view name) const;    // PATH/name
  // Returns the contents of config.json. Before Begin, these are what Find read, or JSON's null if there was no run.
  const nlohmann::ordered_json& config() const { return *config_; }

  // Makes the folder if it doesn't exist. If `overwrite` is set, removes the old run's files. Removes temporary files
  // that a killed process left. Then writes `config` to config.json, unless a resumed run has an equal one.
  absl::Status Begin(const nlohmann::ordered_json& config);

  // After Begin, replaces config.json by `config`, unless it is equal.
  absl::Status SetConfig(const nlohmann::ordered_json& config);
  // Writes a file that the run needs at all times, such as tokenizer.json. Call it on rank 0 only, like what follows.
  absl::Status WriteKept(const std::string& name, absl::string_view contents);

  // Checks that the folder at path() is the folder that this object has locked. Call this before each save. Returns
  // FailedPrecondition if the folder was removed or renamed, or if another folder has its name.
  absl::Status CheckStillThere() const;
  // Writes config.json and the files of WriteKept again where they are missing, and returns their names. Without them,
  // nothing can use the run's weights. Returns the error of CheckStillThere, or that of writing.
  absl::StatusOr<std::vector<std::string>> RestoreFiles() const;

 private:
  explicit RunDirectory(const RunDirectoryOptions& options);
  absl::Status FindAlone();
  absl::Status Inspect();
  absl::Status MakeFolder();
  absl::Status Lock();
  absl::Status Clear() const;

  RunDirectoryOptions options_;
  std::string path_;
  Descriptor lock_{-1};
  bool exists_ = false, holds_run_ = false;
  std::shared_ptr<const nlohmann::ordered_json> config_;
  std::map<std::string, std::string> kept_;  // the contents of the files that RestoreFiles writes, by name
};

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_RUN_DIRECTORY_H_
