// ReadRun makes the job of a run that exists, to look at its model and its steps. It locks and changes nothing.
//
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingJob> job, ReadRun("runs/gpt-1", {{"batch", "4"}}));
//   WEFT_RETURN_IF_ERROR(job->Prepare(&parameters));
#ifndef WEFT_TRAIN_JOBS_READ_RUN_H_
#define WEFT_TRAIN_JOBS_READ_RUN_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "weft/train/jobs/job.h"

namespace weft {

// Reports whether `folder` holds a run of a kind in JobNames().
bool HoldsRun(const std::string& folder);

// Returns the run's job with its options, of which `changes` (texts by flag) are set last. The options are checked, and
// the job is not prepared. Errors name the folder, or the option of `changes` that the run does not have.
absl::StatusOr<std::unique_ptr<TrainingJob>> ReadRun(const std::string& folder,
                                                     const std::map<std::string, std::string>& changes = {});

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_READ_RUN_H_
