// RunTraining begins or resumes a run, trains, shows the progress, and finishes the run. The commands `weft train NAME`
// and weft.train of Python call it.
//
//   RunFlags flags = {.given = {{"data", "book.txt"}}, .run = {.name = "gpt"}};
//   std::unique_ptr<Messenger> messenger;
//   WEFT_ASSIGN_OR_RETURN(const std::string folder, RunTraining(flags, &messenger));   // "runs/gpt-1"
#ifndef WEFT_APPS_TRAIN_RUN_TRAINING_H_
#define WEFT_APPS_TRAIN_RUN_TRAINING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "weft/apps/train/read_job.h"
#include "weft/distributed/messenger.h"

namespace weft {

// Runs a training and returns the run's folder. `messenger` keeps the connection to the other ranks, which must last
// until an error is printed. Returns Cancelled if a signal ended the training, after it was saved. Errors are those of
// UsageError and Failure (apps/flags.h).
absl::StatusOr<std::string> RunTraining(RunFlags flags, std::unique_ptr<Messenger>* messenger);

}  // namespace weft

#endif  // WEFT_APPS_TRAIN_RUN_TRAINING_H_
