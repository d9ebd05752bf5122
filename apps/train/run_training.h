// ReadJob makes a job from the flags of a training command, which `weft train` and `weft estimate train` share.
// RunTraining begins or resumes a run, trains, shows the progress, and finishes the run. The commands `weft train NAME`
// and weft.train of Python call it.
//
//   RunFlags flags = {.run = {.name = "gpt"}};
//   AddFlags(app, RunTable(&flags), &flags.given);
//   AddFlags(app, MakeJob("gpt")->Table(), &flags.given);
//   ...                                                               // after parsing
//   std::unique_ptr<Messenger> messenger;
//   WEFT_ASSIGN_OR_RETURN(const std::string folder, RunTraining(flags, &messenger));   // calls ReadJob; "runs/gpt-1"
#ifndef WEFT_APPS_TRAIN_RUN_TRAINING_H_
#define WEFT_APPS_TRAIN_RUN_TRAINING_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "weft/apps/flags.h"
#include "weft/distributed/messenger.h"
#include "weft/options/hyperparameters.h"
#include "weft/train/jobs/job.h"
#include "weft/train/run/run_directory.h"
#include "weft/train/step/step_options.h"

namespace weft {

struct RunFlags {
  GivenFlags given;
  std::string config;
  // The contents of `config`, once ReadJob has read them. Standard input can't be read again.
  std::shared_ptr<nlohmann::ordered_json> contents = std::make_shared<nlohmann::ordered_json>();
  RunDirectoryOptions run;
  bool quiet = false, verbose = false;
  double rank_timeout = 60;  // seconds of silence after which a rank counts as dead; 0: no limit
  Sharding sharding = Sharding::kNone;
  int64_t check_weights_every = 100;  // see TrainerOptions
};
// Returns the rows that all training commands share. They point into `flags`.
Hyperparameters RunTable(RunFlags* flags);

// Finds a run's folder as RunDirectory::Find does. Returns its error as a usage error. If the folder exists, the error
// names the flags that help.
absl::StatusOr<RunDirectory> FindRun(const RunDirectoryOptions& options);

// Returns a job of the kind `flags.run.name` with checked options. Later sources win: defaults, config.json of a
// resumed run, --config, flags, `changes`.
absl::StatusOr<std::unique_ptr<TrainingJob>> ReadJob(const RunFlags& flags, const RunDirectory& run,
                                                     const GivenFlags& changes = {});

// Runs a training and returns the run's folder. `messenger` keeps the connection to the other ranks, which must last
// until an error is printed. Returns Cancelled if a signal ended the training, after it was saved. Errors are those of
// UsageError and Failure (apps/flags.h).
absl::StatusOr<std::string> RunTraining(RunFlags flags, std::unique_ptr<Messenger>* messenger);

}  // namespace weft

#endif  // WEFT_APPS_TRAIN_RUN_TRAINING_H_
