// An AxisSlice describes a tensor as a slice of a larger tensor, the whole. Along one axis, the slice has the indices
// begin .. begin + size - 1 of the whole, where `size` is the slice's size along this axis.
//
// The ops slice, pad, concat and split copy between slices and wholes. This file also has helpers for ops with axes.
#ifndef WEFT_OPS_KERNELS_ROWS_AXIS_H_
#define WEFT_OPS_KERNELS_ROWS_AXIS_H_

#include <array>
#include <cstdint>
#include <tuple>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/op.h"

namespace weft {

// Holds the attributes of concat, flip and max.
struct AxisAttrs {
  int32_t axis = 0;  // from the front
  auto Fields() const { return std::tuple{AttrField{"axis", axis}}; }
};

struct AxisSlice {
  Shape whole, slice;
  int axis = 0;  // from the front
  int64_t begin = 0;

  // Returns the rectangle of the slice that lies inside `of_whole`, a rectangle of the whole. If there is none, the
  // result has no rows or no columns.
  Rect InSlice(Rect of_whole) const;
  // Returns the smallest rectangle of the whole that contains `of_slice`, a rectangle of the slice. It may contain
  // elements outside the slice, but no other elements of the slice.
  Rect InWhole(Rect of_slice) const;
  // Calls f(offset in the whole, offset in the slice, n) so that the calls cover all elements that `of_whole` shares
  // with the slice. The n elements of a call are consecutive in both.
  void ForInnerLoops(Rect of_whole, absl::FunctionRef<void(int64_t, int64_t, int64_t)> f) const;
  // Calls f(offset in the whole, offset in the slice) for each element of the slice. Serves OpDef::reference.
  void ForElements(absl::FunctionRef<void(int64_t, int64_t)> f) const;

 private:
  bool last() const { return axis == whole.rank() - 1; }
  int64_t inner() const { return whole.Product(axis + 1, whole.rank() - 1); }  // rows of one position
  int64_t SliceRow(int64_t whole_row) const;  // number of earlier rows that belong to the slice
  int64_t WholeRow(int64_t slice_row) const;
};

// Copy the elements that `of_whole`, a rectangle of the whole, shares with the slice. CopyToSlice copies them from the
// whole to the slice, and CopyToWhole from the slice to the whole.
void CopyToSlice(const AxisSlice& slice, Rect of_whole, const Tensor& from_whole, const Tensor& to_slice);
void CopyToWhole(const AxisSlice& slice, Rect of_whole, const Tensor& from_slice, const Tensor& to_whole);

// Returns `axis` counted from the front. If the shape has no such axis, returns `axis` unchanged; CheckAxis reports it.
inline int FrontAxis(const Shape& shape, int axis) { return NormalAxis(shape, axis).value_or(axis); }
// If the first input has no axis `axis`, counted from the front, returns an error such as "axis 3 is outside rank 3".
absl::Status CheckAxis(const char* op, int axis, TypeSpan in);
Shape WithoutAxis(const Shape& shape, int axis);  // `axis`: from the front

using AxisSet = std::array<bool, Shape::kMaxRank>;  // for each axis, counted from the front: whether the set has it
// Returns the set of `axes` of an input of `type`. Returns an error if an axis is outside the rank or is named twice.
absl::StatusOr<AxisSet> MarkAxes(const char* op, absl::Span<const int> axes, const TensorType& type);
Shape WithoutAxes(const Shape& shape, const AxisSet& axes);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_ROWS_AXIS_H_
