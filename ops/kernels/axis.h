// A Part describes which slice of a larger tensor, along one axis, a tensor is: the positions
// begin .. begin + (its size) - 1.
//
// Slice, pad, concat and split copy between parts and wholes. This file also has helpers for ops with axes.
#ifndef WEFT_OPS_KERNELS_AXIS_H_
#define WEFT_OPS_KERNELS_AXIS_H_

#include "absl/functional/function_ref.h"
#include "weft/core/op.h"

namespace weft {

struct Part {
  Shape whole, part;
  int axis = 0;  // from the front
  int64_t begin = 0;

  // Returns the rectangle of the part that lies inside a rectangle of the whole. An empty one has no rows or no
  // columns.
  Rect InPart(Rect of_whole) const;
  // Returns the smallest rectangle of the whole that holds a rectangle of the part, and no other element of the part.
  Rect InWhole(Rect of_part) const;
  // Calls f(offset in the whole, offset in the part, n) for each run of elements that a rectangle of the whole shares
  // with the part.
  void ForRuns(Rect of_whole, absl::FunctionRef<void(int64_t, int64_t, int64_t)> f) const;

 private:
  bool last() const { return axis == whole.rank() - 1; }
  int64_t inner() const { return whole.Product(axis + 1, whole.rank() - 1); }  // rows of one position
  int64_t PartRow(int64_t whole_row) const;  // number of earlier rows that belong to the part
  int64_t WholeRow(int64_t part_row) const;
};

// Copy the elements that a rectangle of the whole shares with the part, to the part or to the whole.
void CopyToPart(const Part& part, Rect of_whole, const Tensor& from_whole, const Tensor& to_part);
void CopyToWhole(const Part& part, Rect of_whole, const Tensor& from_part, const Tensor& to_whole);

// Returns `axis` counted from the front. Returns an axis outside the shape unchanged; CheckAxis reports it.
inline int FrontAxis(const Shape& shape, int axis) { return NormalAxis(shape, axis).value_or(axis); }
// Returns the error "axis 3 is outside rank 3" if the first input has no such axis, counted from the front.
absl::Status CheckAxis(const char* op, int axis, TypeSpan in);
Shape WithoutAxis(const Shape& shape, int axis);  // `axis`: from the front

using AxisSet = std::array<bool, Shape::kMaxRank>;  // for each axis from the front: whether it is a member
// Returns the set of `axes` of an input of `type`. An error if an axis is outside the rank or is named twice.
absl::StatusOr<AxisSet> MarkAxes(const char* op, absl::Span<const int> axes, const TensorType& type);
Shape WithoutAxes(const Shape& shape, const AxisSet& axes);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_AXIS_H_
