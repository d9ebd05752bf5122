// TrainingCommand makes a command `weft train NAME` from a TrainingJob. The command sets the job's options from flags
// and configuration files, begins or resumes a run, shows its progress, and turns errors into exit codes.
//
//   Command TrainGptCommand(CLI::App* weft) {
//     return TrainingCommand(weft, "gpt", "Trains a GPT.", [] { return std::make_unique<GptJob>(); },
//                           "trains a GPT on a text", {{"Trains.", "weft train gpt --data=book.txt"}});
//   }
#ifndef WEFT_APPS_TRAIN_TRAINING_COMMAND_H_
#define WEFT_APPS_TRAIN_TRAINING_COMMAND_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/apps/commands.h"
#include "weft/train/jobs/job.h"

namespace weft {

// Returns the command `weft train NAME`, with the help `about`. `make` creates the job. The command has a flag for each
// row of the job's table, and the flags that all runs share, such as --out and --resume.
Command TrainingCommand(CLI::App* weft, const std::string& name, const std::string& about,
                        std::function<std::unique_ptr<TrainingJob>()> make, const std::string& summary,
                        std::vector<Example> examples);

}  // namespace weft

#endif  // WEFT_APPS_TRAIN_TRAINING_COMMAND_H_
