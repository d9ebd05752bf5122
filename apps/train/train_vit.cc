// The command `weft train vit`.
#include "weft/apps/train/training_command.h"
#include "weft/train/jobs/vit_job.h"

namespace weft {

Command TrainVitCommand(CLI::App* weft) {
  return TrainingCommand(
      weft, "vit",
      "Trains a Vision Transformer to classify pictures by their labels. With --task, it learns from pictures "
      "without labels instead; --init=RUN then begins a classifier with these weights.",
      [] { return std::make_unique<VitJob>(); }, "trains a Vision Transformer on labelled images",
      {{"Trains on lines of pixels and a label.", "weft train vit --data=digits.csv"},
       {"Moves the pictures by up to 1 pixel, and stops when it no longer helps.",
        "weft train vit --data=digits.csv --shift=1 --epochs=200 --patience=10"},
       {"Learns to guess hidden patches; a classifier can begin with this run.",
        "weft train vit --data=digits.csv --task=masked"}});
}

}  // namespace weft
