// The command `weft train translate`.
#include "weft/apps/train/training_command.h"
#include "weft/train/jobs/translate_job.h"

namespace weft {

Command TrainTranslateCommand(CLI::App* weft) {
  return TrainingCommand(weft, "translate", "Trains an encoder-decoder Transformer on pairs of sentences.",
                         [] { return std::make_unique<TranslateJob>(); },
                         "trains an encoder-decoder on sentences and their translations",
                         {{"Trains on a file of sentences and a file of their translations.",
                           "weft train translate --source=en.txt --target=de.txt"},
                          {"Trains a smaller model for longer, in a folder with a name.",
                           "weft train translate --source=en.txt --target=de.txt --encoder-layers=3 --decoder-layers=3 "
                           "--epochs=30 --out=runs/small"}});
}

}  // namespace weft
