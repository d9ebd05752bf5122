// A SafetensorsFile reads, and WriteSafetensors writes, the safetensors format
// (https://github.com/huggingface/safetensors). A file has an 8-byte little-endian header length, a JSON header with
// each tensor's dtype, shape and byte range, and then the tensors' bytes.
//
//   WEFT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open("model.safetensors"));
//   for (const auto& [name, tensor] : file.tensors()) ...
#ifndef WEFT_CORE_SAFETENSORS_H_
#define WEFT_CORE_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/arena.h"
#include "weft/base/checksum.h"
#include "weft/base/file.h"
#include "weft/core/dtype.h"
#include "weft/core/tensor.h"

namespace weft {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Whether a file must hold its own checksum, as the files that WriteSafetensors writes do.
enum class WantedChecksum {
  kIfPresent,  // published files have none
  // The file is one of a run. Without this rule, a changed bit in the name of the checksum would hide the checksum.
  // Files without "__metadata__" are accepted: Weft 0.1.0 wrote them before it knew checksums.
  kOfRun
};

// A dtype of files of weights that has no DType, by its name in safetensors. Reading converts I64 to i32. No kernel
// computes with the others, so their bytes are not read.
struct OtherDType {
  absl::string_view name;
  uint64_t bits;  // of one element
  std::optional<DType> read_as = std::nullopt;
};
// Returns the row of a dtype, or null if no such dtype is known.
const OtherDType* FindOtherDType(absl::string_view name);

// Copies the elements `from`, as the file has them, to `to`. `other`: the dtype in the file; null: that of `to`.
// Returns an error for a BOOL other than 0 and 1, and for an I64 that does not fit i32.
absl::Status CopyStored(absl::string_view from, const OtherDType* other, const Tensor& to);
// Reports whether kernels can use the elements `bytes` where they are in the file.
bool IsUsableInPlace(absl::string_view bytes, const OtherDType* other, DType dtype);

// The tensors of a file of weights, which is mapped. Tensors whose bytes need no conversion stay where they are in the
// file (MappedFile).
class TensorFile {
 public:
  // The tensors in the order of the file.
  absl::Span<const NamedTensor> tensors() const { return tensors_; }
  // The names and types of the tensors that `tensors` lacks, because no DType holds them: {"mask", "U8[4,4]"}.
  absl::Span<const std::pair<std::string, std::string>> unread() const { return unread_; }

 protected:
  // Returns the tensor with the elements `from` of the mapped file: in place or, if kernels can't use them there,
  // converted as CopyStored does.
  absl::StatusOr<Tensor> Place(const TensorType& type, absl::string_view from, const OtherDType* other);

  MappedFile mapped_;
  Arena arena_;  // of the tensors that were converted
  std::vector<NamedTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> unread_;
};

class SafetensorsFile : public TensorFile {
 public:
  // Maps a file and checks it. The header must be a JSON object of at most 100 MB, with the format's dtypes and at most
  // 6 axes. Byte ranges must fit their shapes, follow each other without gap or overlap, and end with the file. Errors
  // name file and tensor. I64 becomes i32; a value that does not fit is an error. If the file holds its checksum,
  // verifies it; DataLoss says that the file is damaged.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path,
                                              WantedChecksum checksum = WantedChecksum::kIfPresent);

  // Returns the tensor called `name`, or null if there is none.
  const NamedTensor* Find(absl::string_view name) const;
};

// Writes `tensors` to `path` in the given order, by a NewFile. `metadata`: entries of the header's "__metadata__";
// Hugging Face's programs need {"format", "pt"}. The entry "checksum" of "__metadata__" is the file's own checksum
// (base/checksum.h). Names must be UTF-8 and differ.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

// Writes the file of WriteSafetensors, one tensor after the other. So the tensors need not be in memory at the same
// time.
//
//   WEFT_ASSIGN_OR_RETURN(auto writer, SafetensorsWriter::Create("model.safetensors", {{"w", {kF32, {8, 8}}}}));
//   WEFT_RETURN_IF_ERROR(writer.Add(w));
//   WEFT_RETURN_IF_ERROR(writer.Finish());
class SafetensorsWriter {
 public:
  using NamedType = std::pair<std::string, TensorType>;
  static absl::StatusOr<SafetensorsWriter> Create(const std::string& path, absl::Span<const NamedType> tensors,
                                                  const std::map<std::string, std::string>& metadata = {});
  // Writes the bytes of the next tensor.
  absl::Status Add(const Tensor& tensor);
  // Must be called after all tensors. Without Finish, `path` stays as it was.
  absl::Status Finish();

 private:
  SafetensorsWriter(NewFile file, size_t checksum_offset) : file_(std::move(file)), checksum_offset_(checksum_offset) {}
  absl::Status Append(absl::string_view bytes);

  NewFile file_;
  Checksummer checksum_;
  size_t checksum_offset_;
};

}  // namespace weft

#endif  // WEFT_CORE_SAFETENSORS_H_
