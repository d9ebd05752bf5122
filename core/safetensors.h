// Reads and writes the safetensors format: an 8-byte little-endian header length, a JSON header that gives each
// tensor's dtype, shape and byte range, then the bytes (https://github.com/huggingface/safetensors).
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
  // Reads a whole file and checks it: a header that is JSON and in bounds, known dtypes, byte ranges that fit their
  // shapes, follow each other without hole or overlap and end with the file. The error names file and tensor. F16 is
  // read as f32, and I64 as i32, if every value fits.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  absl::Span<const NamedTensor> tensors() const { return tensors_; }  // in the order of their bytes
  const NamedTensor* Find(absl::string_view name) const;              // null if there is none

 private:
  Arena arena_;
  std::vector<NamedTensor> tensors_;
};

// Writes `tensors` in the given order through a temporary file in the same folder, which is synced and renamed.
// `metadata` is what other programs want to be told: {"format", "pt"} for Hugging Face's.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace weft

#endif  // WEFT_CORE_SAFETENSORS_H_
