// These functions write and read model.bin, the file of weights that the program CTranslate2 opens. No other folder
// includes this header.
#ifndef WEFT_FORMATS_CTRANSLATE2_BIN_H_
#define WEFT_FORMATS_CTRANSLATE2_BIN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/formats/weights.h"

namespace weft {

// Writes the model.bin of a model. `weights` have CTranslate2's names, except embeddings that both sides share. Returns
// InvalidArgument if a tensor is not f32 or has more than 4 GiB, or if a name is too long.
absl::Status WriteModelBin(const std::string& path, const TransformerConfig& config, Weights weights);
// Reads a model.bin of version 6: returns the weights in f32 under the names that WriteModelBin takes, and sets all
// that the file tells of `config`. A quantized tensor is divided by its scales, and these are left out. Returns
// InvalidArgument if the file is damaged, or has another version or another kind of model. Also returns
// InvalidArgument, with the name, if the model has a feature that this project's Transformer lacks.
absl::StatusOr<Weights> ReadModelBin(const std::string& path, TransformerConfig* config);

}  // namespace weft

#endif  // WEFT_FORMATS_CTRANSLATE2_BIN_H_
