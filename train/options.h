// The hyperparameters that every training command has, as rows of the table of flags and configuration keys.
#ifndef WEFT_TRAIN_OPTIONS_H_
#define WEFT_TRAIN_OPTIONS_H_

#include <cstdint>

#include "weft/core/hyperparameters.h"
#include "weft/train/optimizer.h"
#include "weft/train/trainer.h"

namespace weft {

inline constexpr int64_t kMaxSteps = 1 << 24;  // of a training: the optimizer counts in f32

// The rows point into `options` and `config`. With `epochs`, a row of that name, too: then no steps mean as many as the
// epochs have, and where something is done each so many steps, -1 is at the end of each epoch.
Hyperparameters TrainerHyperparameters(TrainerOptions* options, int64_t* epochs = nullptr);
// The same options in steps, for epochs of so many batches.
TrainerOptions InSteps(TrainerOptions options, int64_t epochs, int64_t batches);
Hyperparameters AdamWHyperparameters(AdamWConfig* config);

}  // namespace weft

#endif  // WEFT_TRAIN_OPTIONS_H_
