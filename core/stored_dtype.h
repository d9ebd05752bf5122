// The dtypes that files of weights have, by their names in safetensors. Those without a DType are converted when they
// are read, or are not read.
//
//   const OtherDType* const half = FindOtherDType("I64");   // read as i32
//   WEFT_RETURN_IF_ERROR(CopyStored(bytes, half, tensor));
#ifndef WEFT_CORE_STORED_DTYPE_H_
#define WEFT_CORE_STORED_DTYPE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "weft/core/dtype.h"
#include "weft/core/tensor.h"

namespace weft {

// A dtype that has no DType. Reading converts I64 to i32. No kernel computes with the others, so their bytes are not
// read.
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

}  // namespace weft

#endif  // WEFT_CORE_STORED_DTYPE_H_
