// The command `weft train vit`.
#include "weft/apps/train/training_command.h"
#include "weft/train/jobs/vit_job.h"

namespace weft {

Command TrainVitCommand(CLI::App* train) {
  return TrainingCommand(train, "vit", "Trains a Vision Transformer on pictures with labels.",
                         [] { return std::make_unique<VitJob>(); });
}

}  // namespace weft
