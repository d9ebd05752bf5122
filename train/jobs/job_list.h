// The kinds of training by name: gpt, bert, translate, classify, vit.
//
//   const std::unique_ptr<TrainingJob> job = MakeJob("gpt");   // null if there is no such kind
#ifndef WEFT_TRAIN_JOBS_JOB_LIST_H_
#define WEFT_TRAIN_JOBS_JOB_LIST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "weft/train/jobs/job.h"

namespace weft {

std::vector<std::string> JobNames();
// Returns a new job with default options, or null if `name` is not in JobNames().
std::unique_ptr<TrainingJob> MakeJob(absl::string_view name);

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_JOB_LIST_H_
