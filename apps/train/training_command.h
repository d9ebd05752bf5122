// TrainingCommand makes a command `weft train NAME` from a kind of training. The command sets the job's options from
// flags and configuration files, begins or resumes a run, shows its progress, and turns errors into exit codes.
//
//   Command TrainGptCommand(CLI::App* weft) {
//     return TrainingCommand(weft, {"gpt", "Trains a GPT.", "trains a GPT on a text",
//                                   {{"Trains.", "weft train gpt --data=book.txt"}}});
//   }
#ifndef WEFT_APPS_TRAIN_TRAINING_COMMAND_H_
#define WEFT_APPS_TRAIN_TRAINING_COMMAND_H_

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"

namespace weft {

// Returns the command `weft train NAME`. `texts.name`: the kind of training, one of JobNames(). The command has a flag
// for each row of the job's table, and the flags that all runs share, such as --out and --resume.
Command TrainingCommand(CLI::App* weft, CommandTexts texts);

}  // namespace weft

#endif  // WEFT_APPS_TRAIN_TRAINING_COMMAND_H_
