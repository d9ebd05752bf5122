// CheckSameTraining compares the ranks of a training before it begins. It finds a rank with another version of Weft,
// other CPU features, other options, another model or other data.
//
//   WEFT_RETURN_IF_ERROR(CheckSameTraining(ranks, DescribeTraining(config, job.Table(), job.data())));
//   // rank 1 has learning_rate 0.002, but rank 0 has 0.001; ...
#ifndef WEFT_TRAIN_JOBS_SAME_TRAINING_H_
#define WEFT_TRAIN_JOBS_SAME_TRAINING_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "weft/core/hyperparameters.h"
#include "weft/distributed/ranks.h"

namespace weft {

// Returns the properties that must be the same on all ranks: version and CPU features of this process, and `config` and
// `data`. `config`: the run's configuration. `data`: the fingerprint of its data. Leaves out the options of `table`
// that may differ. These are paths, because the checksums of the files count, and options such as `threads`, which
// change neither results nor graphs.
nlohmann::ordered_json DescribeTraining(const nlohmann::ordered_json& config, const Hyperparameters& table,
                                        const std::string& data);

// Compares the descriptions of all ranks. Returns OK or, on every rank, FailedPrecondition. The message names the first
// rank that differs from rank 0, the first key in which it differs, and both values. Waits for all ranks.
absl::Status CheckSameTraining(const Ranks& ranks, const nlohmann::ordered_json& description);

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_SAME_TRAINING_H_
