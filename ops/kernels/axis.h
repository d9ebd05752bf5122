// A tensor as a part of a larger one: positions begin .. begin + (its size) - 1 along one axis. Slice, pad, concat and
// split copy between parts and wholes.
#ifndef WEFT_OPS_KERNELS_AXIS_H_
#define WEFT_OPS_KERNELS_AXIS_H_

#include "absl/functional/function_ref.h"
#include "weft/core/op.h"

namespace weft {

struct Part {
  Shape whole, part;
  int axis = 0;  // from the front
  int64_t begin = 0;

  // The part's rectangle that lies inside a rectangle of the whole; empty ones have no rows or no columns.
  Rect InPart(Rect of_whole) const;
  // The smallest rectangle of the whole that holds a rectangle of the part. Of the part it holds nothing else.
  Rect InWhole(Rect of_part) const;
  // f(first element in the whole, first element in the part, n) for what the part has of a rectangle of the whole.
  void ForRuns(Rect of_whole, absl::FunctionRef<void(int64_t, int64_t, int64_t)> f) const;

 private:
  bool last() const { return axis == whole.rank() - 1; }
  int64_t inner() const { return whole.Product(axis + 1, whole.rank() - 1); }  // rows for each position
  int64_t PartRow(int64_t whole_row) const;  // rows before this one that belong to the part
  int64_t WholeRow(int64_t part_row) const;
};

// Copies between the bytes of part and whole what lies in a rectangle of the whole.
void CopyToPart(const Part& part, Rect of_whole, const Tensor& from_whole, const Tensor& to_part);
void CopyToWhole(const Part& part, Rect of_whole, const Tensor& from_part, const Tensor& to_whole);

// `axis` counted from the front, or as it is if it lies outside: the shape rule will say so.
inline int FrontAxis(const Shape& shape, int axis) { return NormalAxis(shape, axis).value_or(axis); }
// "axis 3 is outside rank 3" for `axis`, counted from the front, and the first input; or OK.
absl::Status CheckAxis(const char* op, int axis, TypeSpan in);
Shape WithoutAxis(const Shape& shape, int axis);  // counted from the front

using AxisSet = std::array<bool, Shape::kMaxRank>;  // by axis, counted from the front
// Which axes of an input of `type` are named; an error where one is none of it, or is named twice.
absl::StatusOr<AxisSet> MarkAxes(const char* op, absl::Span<const int> axes, const TensorType& type);
Shape WithoutAxes(const Shape& shape, const AxisSet& axes);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_AXIS_H_
