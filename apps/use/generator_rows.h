// The flags of commands that generate text.
//
//   Hyperparameters table = GeneratorRows(&options);   // --length, --temperature, --top-k, ..., --weights, --threads
#ifndef WEFT_APPS_USE_GENERATOR_ROWS_H_
#define WEFT_APPS_USE_GENERATOR_ROWS_H_

#include "weft/core/hyperparameters.h"
#include "weft/inference/text_generation.h"

namespace weft {

// Returns rows for the options of a TextGenerator that these commands share.
Hyperparameters GeneratorRows(TextGeneratorOptions* generator);

}  // namespace weft

#endif  // WEFT_APPS_USE_GENERATOR_ROWS_H_
