// The command `weft train classify`.
#include "weft/apps/train/training_command.h"
#include "weft/train/jobs/classify_job.h"

namespace weft {

Command TrainClassifyCommand(CLI::App* train) {
  return TrainingCommand(train, "classify",
                         "Trains a BERT-style classifier of texts, from initial or published weights.",
                         [] { return std::make_unique<ClassifyJob>(); });
}

}  // namespace weft
