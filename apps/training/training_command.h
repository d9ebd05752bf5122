// What the commands `weft train ...` have in common: flags, configuration, run folder, progress, resuming.
#ifndef WEFT_APPS_TRAINING_TRAINING_COMMAND_H_
#define WEFT_APPS_TRAINING_TRAINING_COMMAND_H_

#include <functional>
#include <memory>
#include <string>

#include "weft/apps/commands.h"
#include "weft/train/job.h"

namespace weft {

// `weft train NAME`, with the flags of the job's table and those of runs.
Command TrainingCommand(CLI::App* train, const std::string& name, const std::string& about,
                        std::function<std::unique_ptr<TrainingJob>()> make);

}  // namespace weft

#endif  // WEFT_APPS_TRAINING_TRAINING_COMMAND_H_
