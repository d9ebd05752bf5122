// The flags that all commands share which write a model.
#ifndef WEFT_APPS_CONVERT_CONVERT_ROWS_H_
#define WEFT_APPS_CONVERT_CONVERT_ROWS_H_

#include "weft/core/hyperparameters.h"
#include "weft/formats/convert.h"

namespace weft {

// Returns the rows for the tokenizer, the output folder's files and the tensors of the input.
Hyperparameters ConvertRows(ConvertOptions* options);
// Writes the model, and prints a note on stderr that names the tensors that were left out.
absl::Status WriteConverted(const ModelConversion& conversion);

}  // namespace weft

#endif  // WEFT_APPS_CONVERT_CONVERT_ROWS_H_
