// A run's config.json has checksums of the files that the run was made from. If a run is resumed with other data, they
// tell which file changed.
//
//   config[kFilesKey] = FileChecksums(job.Table(), run.path());   // {"data": "2d06800538d394c2", ...}
//   ...                                                           // later, to resume the run
//   const std::string changed = ChangedFiles(run.config(), config);   // "data: text.txt has changed"
#ifndef WEFT_TRAIN_JOBS_RUN_FILES_H_
#define WEFT_TRAIN_JOBS_RUN_FILES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weft/core/hyperparameters.h"

namespace weft {

// Returns an object with the checksum of each file that an option of `table` names, by the option's key, and of each
// tokenizer file in the folder `run`, by the file's name. `run` may be "" or missing. The checksum of a folder is that
// of its tokenizer files and its index.json. Anything else that is no regular file is left out.
nlohmann::ordered_json FileChecksums(const Hyperparameters& table, const std::string& run);

// Compares the files of two configurations, of when the run began and of now. Each has options with their values, and
// the result of FileChecksums under kFilesKey. Returns the files with other checksums, separated by "; ", or "" if
// there is none. A file that one side lacks does not count.
std::string ChangedFiles(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now);

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_RUN_FILES_H_
