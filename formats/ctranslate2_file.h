// WriteCTranslate2File writes model.bin, the file of weights that the program CTranslate2 opens. No other folder
// includes this header.
//
//   WEFT_RETURN_IF_ERROR(WriteCTranslate2File("ct2/model.bin", {.tensors = tensors,
//                                                               .numbers = {{"encoder/num_heads", 2, 8}}}));
#ifndef WEFT_FORMATS_CTRANSLATE2_FILE_H_
#define WEFT_FORMATS_CTRANSLATE2_FILE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "weft/core/safetensors.h"

namespace weft {

struct CTranslate2File {
  // A setting of the model, such as the number of heads: a signed integer of 1 or 2 bytes.
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

}  // namespace weft

#endif  // WEFT_FORMATS_CTRANSLATE2_FILE_H_
