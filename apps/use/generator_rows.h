// The flags of commands that generate text.
//
//   Hyperparameters table = GeneratorRows(&options);   // --length, --temperature, --top-k, ..., --weights, --threads
#ifndef WEFT_APPS_USE_GENERATOR_ROWS_H_
#define WEFT_APPS_USE_GENERATOR_ROWS_H_

#include "weft/core/hyperparameters.h"
#include "weft/inference/text_generation.h"

namespace weft {

// Returns the rows of the options that such commands share. The rest of a TextGeneratorOptions is not among them.
Hyperparameters GeneratorRows(TextGeneratorOptions* generator);

}  // namespace weft

#endif  // WEFT_APPS_USE_GENERATOR_ROWS_H_
