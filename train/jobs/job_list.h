// The kinds of training by name: gpt, bert, translate, classify, vit; and the job of a run that exists.
//
//   const std::unique_ptr<TrainingJob> job = MakeJob("gpt");   // null if there is no such kind
//   WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingJob> same, ReadRun("runs/gpt-1", {{"batch", "4"}}));
#ifndef WEFT_TRAIN_JOBS_JOB_LIST_H_
#define WEFT_TRAIN_JOBS_JOB_LIST_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/train/jobs/job.h"

namespace weft {

std::vector<std::string> JobNames();
// Returns a new job with default options, or null if `name` is not in JobNames().
std::unique_ptr<TrainingJob> MakeJob(absl::string_view name);

// The new jobs of the kinds that no other code names, each in a file of its own, such as train/jobs/bert_job.cc.
std::unique_ptr<TrainingJob> MakeBertJob();
std::unique_ptr<TrainingJob> MakeTranslateJob();
std::unique_ptr<TrainingJob> MakeClassifyJob();
std::unique_ptr<TrainingJob> MakeVitJob();

// Reports whether `folder` holds a run of a kind in JobNames(), or a config.json that can't be read.
bool HoldsRun(const std::string& folder);
// Returns the run's job with its options, of which `changes` (texts by flag) are set last. The options are checked, and
// the job is not prepared. Locks and changes nothing. Errors name the folder, or the option of `changes` that the run
// does not have.
absl::StatusOr<std::unique_ptr<TrainingJob>> ReadRun(const std::string& folder,
                                                     const std::map<std::string, std::string>& changes = {});

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_JOB_LIST_H_
