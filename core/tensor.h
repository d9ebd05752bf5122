// A Shape holds the sizes of a tensor's axes. A TensorType is a dtype with a shape. A Tensor is a TensorType with a
// pointer to bytes that the Tensor does not own.
//
//   Shape s = {8, 64, 128};
//   s.dim(-1) == 128; s.rows() == 512; s.cols() == 128; ToString(s) == "[8,64,128]";
#ifndef WEFT_CORE_TENSOR_H_
#define WEFT_CORE_TENSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "weft/core/dtype.h"

namespace weft {

// The sizes of a tensor's axes, at most six, outermost first. Axis -1 is the last one.
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  constexpr Shape() = default;
  // More than six sizes, or a negative size, make the shape invalid (see valid()).
  constexpr Shape(std::initializer_list<int64_t> dims) {
    for (int64_t d : dims) Append(d);
  }
  constexpr explicit Shape(absl::Span<const int64_t> dims) {
    for (int64_t d : dims) Append(d);
  }

  constexpr int rank() const { return rank_; }
  // Returns the size of an axis; -1 is the last. An axis that the shape does not have has size 1, as in broadcasting.
  constexpr int64_t dim(int axis) const {
    if (axis < 0) axis += rank_;
    return axis >= 0 && axis < rank_ ? dims_[axis] : 1;
  }
  constexpr void set_dim(int axis, int64_t size) { dims_[axis < 0 ? axis + rank_ : axis] = size; }
  constexpr absl::Span<const int64_t> dims() const { return absl::MakeConstSpan(dims_.data(), rank_); }
  constexpr int64_t elements() const { return Product(0, rank_); }
  // Returns the product of the sizes of the axes begin .. end - 1.
  constexpr int64_t Product(int begin, int end) const {
    int64_t n = 1;
    for (int i = begin; i < end; ++i) n *= dims_[i];
    return n;
  }

  // A shape can be seen as a matrix [rows, cols]: cols is the size of the last axis, rows the product of all others.
  constexpr int64_t cols() const { return rank_ == 0 ? 1 : dims_[rank_ - 1]; }
  constexpr int64_t rows() const { return rank_ == 0 ? 1 : Product(0, rank_ - 1); }

  constexpr void Append(int64_t size) {
    if (rank_ == kMaxRank) {
      dims_[0] = kMaxRankExceeded;
      return;
    }
    dims_[rank_++] = size;
  }
  constexpr bool max_rank_exceeded() const { return dims_[0] == kMaxRankExceeded; }
  // Reports whether at most six sizes were given, none is negative, and the nonzero sizes multiply to at most 2^48.
  bool valid() const;

  friend constexpr bool operator==(const Shape&, const Shape&) = default;  // sizes beyond the rank are zero
  template <class H>
  friend H AbslHashValue(H h, const Shape& s) {
    return H::combine(std::move(h), s.dims());
  }

 private:
  // Replaces the first size if a seventh is appended.
  static constexpr int64_t kMaxRankExceeded = std::numeric_limits<int64_t>::min();

  std::array<int64_t, kMaxRank> dims_ = {};
  int8_t rank_ = 0;
};

// Returns `shape` with `size` along `axis`, which the shape must have.
constexpr Shape WithDim(Shape shape, int axis, int64_t size) {
  shape.set_dim(axis, size);
  return shape;
}
// Returns "[2,3]", or "[]" for a scalar.
std::string ToString(const Shape& shape);
// Returns the indices of element `i` along all axes, such as "[1,2]". Elements are counted row by row.
std::string IndexText(const Shape& shape, int64_t i);

// Returns the shape to which `a` and `b` broadcast by NumPy's rule. Axes are aligned at the end, and two sizes must be
// equal or one of them 1. If `a` and `b` do not fit, returns nothing.
std::optional<Shape> Broadcast(const Shape& a, const Shape& b);
// Returns `axis` counted from the front (-1 becomes rank - 1), or nothing if the shape has no such axis.
std::optional<int> NormalAxis(const Shape& shape, int axis);

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
