// The command `weft train bert`.
#include "weft/apps/train/training_command.h"
#include "weft/train/jobs/bert_job.h"

namespace weft {

Command TrainBertCommand(CLI::App* weft) {
  return TrainingCommand(
      weft, "bert", "Trains a BERT to predict the masked tokens of a text.", [] { return std::make_unique<BertJob>(); },
      "trains a BERT to predict masked tokens of a text",
      {{"Trains on a text of your own, with a small vocabulary.", "weft train bert --data=book.txt --vocabulary=2000"},
       {"Also learns which sentences follow each other.",
        "weft train bert --data=book.txt --next-sentence --steps=20000 --ema=0.999"}});
}

}  // namespace weft
