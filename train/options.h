// The hyperparameters that every training command has, as rows of the table of flags and configuration keys.
#ifndef WEFT_TRAIN_OPTIONS_H_
#define WEFT_TRAIN_OPTIONS_H_

#include "weft/train/hyperparameters.h"
#include "weft/train/optimizer.h"
#include "weft/train/trainer.h"

namespace weft {

// The rows point into `options` and `config`.
Hyperparameters TrainerHyperparameters(TrainerOptions* options);
Hyperparameters AdamWHyperparameters(AdamWConfig* config);

}  // namespace weft

#endif  // WEFT_TRAIN_OPTIONS_H_
