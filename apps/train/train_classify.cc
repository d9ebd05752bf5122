// The command `weft train classify`.
#include "weft/apps/train/training_command.h"
#include "weft/train/jobs/classify_job.h"

namespace weft {

Command TrainClassifyCommand(CLI::App* weft) {
  return TrainingCommand(
      weft, "classify",
      "Trains a BERT-style classifier of texts, pairs of texts or words, or a regression, from initial or published "
      "weights.",
      [] { return std::make_unique<ClassifyJob>(); }, "trains a text classifier, from random or published weights",
      {{"Trains from random weights. A line is a text, a tab and its label.", "weft train classify --data=reviews.tsv"},
       {"Fine-tunes a published encoder, such as that of tools/fetch_minilm.",
        "weft train classify --data=reviews.tsv --init=minilm --epochs=3 --learning-rate=5e-5 --min-learning-rate=0"}});
}

}  // namespace weft
