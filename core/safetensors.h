// Reads and writes the safetensors format: an 8-byte little-endian header length, a JSON header that gives each
// tensor's dtype, shape and byte range, then the bytes (https://github.com/huggingface/safetensors).
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
  // Reads a whole file and checks it. The header must be JSON and in bounds, and dtypes must be known. Byte ranges must
  // fit their shapes, follow each other without hole or overlap, and end with the file. Errors name file and tensor.
  // F16 is read as f32. I64 is read as i32, and is an error if a value does not fit.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  // The tensors, in the order of their bytes.
  absl::Span<const NamedTensor> tensors() const { return tensors_; }
  // Returns the tensor of this name, or null if there is none.
  const NamedTensor* Find(absl::string_view name) const;

 private:
  Arena arena_;
  std::vector<NamedTensor> tensors_;
};

// Writes `tensors` in the given order through a temporary file in the same folder, which is synced and renamed.
// `metadata` are the header's free entries, which some programs need: Hugging Face's want {"format", "pt"}.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace weft

#endif  // WEFT_CORE_SAFETENSORS_H_
