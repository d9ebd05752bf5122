// These functions write and read model.bin, the file of weights that the program CTranslate2 opens. No other folder
// includes this header.
//
//   WEFT_RETURN_IF_ERROR(WriteCTranslate2File("ct2/model.bin", {.tensors = tensors,
//                                                               .numbers = {{"encoder/num_heads", 2, 8}}}));
#ifndef WEFT_FORMATS_CTRANSLATE2_FILE_H_
#define WEFT_FORMATS_CTRANSLATE2_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/safetensors.h"
#include "weft/formats/weights.h"

namespace weft {

struct CTranslate2File {
  // A setting of the model, such as the number of heads: a signed integer of 1, 2 or 4 bytes.
  struct Number {
    std::string name;
    int bytes;
    int value;
  };

  std::vector<NamedTensor> tensors;  // f32
  std::vector<Number> numbers;
  std::map<std::string, std::string> aliases;  // a second name of a tensor, and its first name
};

// Returns InvalidArgument if a tensor is not f32 or has more than 4 GiB, or if a name is too long.
absl::Status WriteCTranslate2File(const std::string& path, const CTranslate2File& file);

// Reads a model.bin of version 6. Adds its tensors to `weights` in f32; the result has no tensors. A quantized tensor
// is divided by its scales, and these are left out. Returns InvalidArgument if the file has another version or another
// kind of model, or if it is damaged.
absl::StatusOr<CTranslate2File> ReadCTranslate2File(const std::string& path, Weights* weights);

// Writes the model.bin of a model. `weights` have CTranslate2's names, except embeddings that both sides share.
absl::Status WriteModelBin(const std::string& path, const TransformerConfig& config, Weights weights);
// Reads a model.bin: returns the weights under the names that WriteModelBin takes, and sets all that the file tells of
// `config`. Returns InvalidArgument, with the name, if the model has a feature that this project's Transformer lacks.
absl::StatusOr<Weights> ReadModelBin(const std::string& path, TransformerConfig* config);

}  // namespace weft

#endif  // WEFT_FORMATS_CTRANSLATE2_FILE_H_
