// The command `weft train bert`.
#include "weft/apps/train/training_command.h"
#include "weft/train/jobs/bert_job.h"

namespace weft {

Command TrainBertCommand(CLI::App* train) {
  return TrainingCommand(train, "bert", "Trains a BERT to predict the masked tokens of a text.",
                         [] { return std::make_unique<BertJob>(); });
}

}  // namespace weft
