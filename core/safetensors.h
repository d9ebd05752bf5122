// A SafetensorsFile reads, and WriteSafetensors writes, the safetensors format
// (https://github.com/huggingface/safetensors). A file has an 8-byte little-endian header length, a JSON header with
// each tensor's dtype, shape and byte range, and then the tensors' bytes.
//
//   WEFT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open("model.safetensors"));
//   for (const auto& [name, tensor] : file.tensors()) ...
#ifndef WEFT_CORE_SAFETENSORS_H_
#define WEFT_CORE_SAFETENSORS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/arena.h"
#include "weft/core/tensor.h"

namespace weft {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

class SafetensorsFile {
 public:
  // Reads a whole file and checks it. The header must be a JSON object of at most 100 MB, with known dtypes and at most
  // 6 axes. Byte ranges must fit their shapes, follow each other without gap or overlap, and end with the file. Errors
  // name file and tensor. F16 becomes f32. I64 becomes i32; a value that does not fit is an error.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  // The tensors, in the order of their bytes.
  absl::Span<const NamedTensor> tensors() const { return tensors_; }
  // Returns the tensor called `name`, or null if there is none.
  const NamedTensor* Find(absl::string_view name) const;

 private:
  Arena arena_;
  std::vector<NamedTensor> tensors_;
};

// Writes `tensors` to `path` in the given order, by WriteFile. `metadata`: entries of the header's "__metadata__";
// Hugging Face's programs need {"format", "pt"}. Names must be UTF-8 and differ.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace weft

#endif  // WEFT_CORE_SAFETENSORS_H_
