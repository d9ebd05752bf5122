// The command `weft train gpt`.
#include "weft/apps/train/training_command.h"
#include "weft/train/jobs/gpt_job.h"

namespace weft {

Command TrainGptCommand(CLI::App* train) {
  return TrainingCommand(train, "gpt",
                         "Trains a character GPT: without a flag, 0.8 million parameters on the King James Bible.",
                         [] { return std::make_unique<GptJob>(); });
}

}  // namespace weft
