// The folder of a training run: config.json, metrics.jsonl, checkpoints/, model.safetensors, tokenizer.json,
// sample.txt.
//
//   WEFT_ASSIGN_OR_RETURN(RunDirectory run, RunDirectory::Find({.name = "gpt", .resume = true}));  // changes nothing
//   ...                                       // continue from run.config()
//   WEFT_RETURN_IF_ERROR(run.Begin(config));  // makes, empties or keeps the folder
#ifndef WEFT_TRAIN_RUN_DIRECTORY_H_
#define WEFT_TRAIN_RUN_DIRECTORY_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/core/file.h"

namespace weft {

struct RunDirectoryOptions {
  std::string name;  // of the kind of run: "gpt"
  std::string out;   // the folder; empty: runs/NAME-N with the next free N or, to resume, the highest there is
  bool resume = false, overwrite = false;
};

class RunDirectory {
 public:
  // Chooses the folder, checks that it may be used, and holds it against other processes if it is there. AlreadyExists
  // if it holds a run and neither `resume` nor `overwrite` is set; NotFound if there is none to resume;
  // FailedPrecondition if it is something else than a run of this kind or an empty folder, or in use.
  static absl::StatusOr<RunDirectory> Find(const RunDirectoryOptions& options);

  const std::string& path() const { return path_; }                 // "" until Begin, for a new default folder
  std::string File(absl::string_view name) const;                   // PATH/name
  const nlohmann::ordered_json& config() const { return config_; }  // of the run that is resumed

  // Makes the folder, or removes from it what a run writes if it is to be overwritten, or what a killed one left half
  // written; then writes config.json, unless the run is resumed with an equal one.
  absl::Status Begin(const nlohmann::ordered_json& config);

 private:
  explicit RunDirectory(const RunDirectoryOptions& options) : options_(options), path_(options.out) {}
  absl::Status Inspect();
  absl::Status MakeFolder();
  absl::Status Lock();
  absl::Status Clear() const;

  RunDirectoryOptions options_;
  std::string path_;
  Descriptor lock_{-1};
  bool exists_ = false, holds_run_ = false;
  nlohmann::ordered_json config_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_RUN_DIRECTORY_H_
