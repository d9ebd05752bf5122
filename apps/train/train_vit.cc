// The command `weft train vit`.
#include "weft/apps/train/training_command.h"
#include "weft/train/jobs/vit_job.h"

namespace weft {

Command TrainVitCommand(CLI::App* weft) {
  return TrainingCommand(weft, "vit", "Trains a Vision Transformer on pictures with labels.",
                         [] { return std::make_unique<VitJob>(); }, "trains a Vision Transformer on labelled images",
                         {{"Trains on lines of pixels and a label.", "weft train vit --data=digits.csv"},
                          {"Moves the pictures by up to 1 pixel, and stops when it no longer helps.",
                           "weft train vit --data=digits.csv --shift=1 --epochs=200 --patience=10"}});
}

}  // namespace weft
