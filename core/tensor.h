// A TensorType is a dtype with a shape. A Tensor is a TensorType with a pointer to bytes that the Tensor does not own.
#ifndef WEFT_CORE_TENSOR_H_
#define WEFT_CORE_TENSOR_H_

#include <cstddef>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "weft/core/dtype.h"
#include "weft/core/shape.h"

namespace weft {

struct TensorType {
  DType dtype = kF32;
  Shape shape;

  size_t bytes() const { return static_cast<size_t>(shape.rows()) * BytesOf(dtype, shape.cols()); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
  template <class H>
  friend H AbslHashValue(H h, const TensorType& t) {
    return H::combine(std::move(h), t.dtype, t.shape);
  }
};

using Types = absl::InlinedVector<TensorType, 2>;
using TypeSpan = absl::Span<const TensorType>;

inline std::string ToString(const TensorType& t) { return absl::StrCat(Name(t.dtype), ToString(t.shape)); }
inline std::string ToString(TypeSpan types) {  // "f32[8,768], i32[8]"
  return absl::StrJoin(types, ", ", [](std::string* out, const TensorType& t) { out->append(ToString(t)); });
}

// Elements are in row-major order without gaps. Memory allocated by Weft begins at a 64-byte boundary.
struct Tensor {
  TensorType type;
  std::byte* data = nullptr;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  template <class T>
  absl::Span<T> span() const {
    return absl::MakeSpan(as<T>(), static_cast<size_t>(type.shape.elements()));
  }
};

}  // namespace weft

#endif  // WEFT_CORE_TENSOR_H_
