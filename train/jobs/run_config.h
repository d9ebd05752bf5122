// A run's config.json has checksums of the files that the run was made from. If a run is resumed with other data, they
// tell which file changed. CheckSameTraining compares the configurations of all ranks before a training begins. It
// finds a rank with another version of Weft, other CPU features, other options, another model or other data.
//
//   config[kFilesKey] = FileChecksums(job.Table(), run.path());   // {"data": "2d06800538d394c2", ...}
//   WEFT_RETURN_IF_ERROR(CheckSameTraining(ranks, DescribeTraining(config, job.Table(), job.data())));
//   // rank 1 has learning_rate 0.002, but rank 0 has 0.001; ...
//   ...                                                               // later, to resume the run
//   const std::string changed = ChangedFiles(run.config(), config);   // "data: text.txt has changed"
#ifndef WEFT_TRAIN_JOBS_RUN_CONFIG_H_
#define WEFT_TRAIN_JOBS_RUN_CONFIG_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "weft/distributed/ranks.h"
#include "weft/options/hyperparameters.h"

namespace weft {

// Returns an object with the checksum of each file that an option of `table` names, by the option's key, and of each
// tokenizer file in the folder `run`, by the file's name. `run` may be "" or missing. The checksum of a folder is that
// of its tokenizer files and its index.json. Anything else that is no regular file is left out.
nlohmann::ordered_json FileChecksums(const Hyperparameters& table, const std::string& run);

// Compares the files of two configurations, of when the run began and of now. Each has options with their values, and
// the result of FileChecksums under kFilesKey. Returns the files with other checksums, separated by "; ", or "" if
// there is none. A file that one side lacks does not count.
std::string ChangedFiles(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now);

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

#endif  // WEFT_TRAIN_JOBS_RUN_CONFIG_H_
