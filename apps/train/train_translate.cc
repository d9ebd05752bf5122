// The command `weft train translate`.
#include "weft/apps/train/training_command.h"
#include "weft/train/jobs/translate_job.h"

namespace weft {

Command TrainTranslateCommand(CLI::App* train) {
  return TrainingCommand(train, "translate", "Trains an encoder-decoder Transformer on pairs of sentences.",
                         [] { return std::make_unique<TranslateJob>(); });
}

}  // namespace weft
