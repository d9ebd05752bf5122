// If the axis is the last one, the slice is a range of columns of the whole. Otherwise the slice is ranges of whole
// rows, one range for each index of the axes before it.
#include "weft/ops/kernels/rows/axis.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"

namespace weft {

int64_t AxisSlice::SliceRow(int64_t whole_row) const {
  const int64_t whole_rows = whole.dim(axis) * inner(), slice_rows = slice.dim(axis) * inner();
  if (whole_rows == 0) return 0;
  const int64_t inside = whole_row % whole_rows - begin * inner();
  return whole_row / whole_rows * slice_rows + std::clamp<int64_t>(inside, 0, slice_rows);
}

int64_t AxisSlice::WholeRow(int64_t slice_row) const {
  const int64_t whole_rows = whole.dim(axis) * inner(), slice_rows = slice.dim(axis) * inner();
  return slice_row / slice_rows * whole_rows + begin * inner() + slice_row % slice_rows;
}

Rect AxisSlice::InSlice(Rect r) const {
  if (!last()) return {SliceRow(r.row_begin), SliceRow(r.row_end), r.col_begin, r.col_end};
  const int64_t cols = slice.cols();
  return {r.row_begin, r.row_end, std::clamp<int64_t>(r.col_begin - begin, 0, cols),
          std::clamp<int64_t>(r.col_end - begin, 0, cols)};
}

Rect AxisSlice::InWhole(Rect r) const {
  if (r.rows() <= 0 || r.cols() <= 0) return {};
  if (last()) return {r.row_begin, r.row_end, r.col_begin + begin, r.col_end + begin};
  return {WholeRow(r.row_begin), WholeRow(r.row_end - 1) + 1, r.col_begin, r.col_end};
}

void AxisSlice::ForInnerLoops(Rect of_whole, absl::FunctionRef<void(int64_t, int64_t, int64_t)> f) const {
  const Rect r = InSlice(of_whole);
  if (r.rows() <= 0 || r.cols() <= 0) return;
  const int64_t whole_cols = whole.cols(), slice_cols = slice.cols();
  const bool joins_rows = !last() && r.cols() == whole_cols;       // rows of a chunk are neighbours in the whole, too
  const int64_t run = joins_rows ? slice.dim(axis) * inner() : 1;  // rows that one inner loop covers
  for (int64_t row = r.row_begin, end; row < r.row_end; row = end) {
    end = std::min(r.row_end, (row / run + 1) * run);
    const int64_t first = last() ? row * whole_cols + begin : WholeRow(row) * whole_cols;
    f(first + r.col_begin, row * slice_cols + r.col_begin, (end - row) * r.cols());
  }
}

void AxisSlice::ForElements(absl::FunctionRef<void(int64_t, int64_t)> f) const {
  const int64_t n = slice.dim(axis), inner = slice.Product(axis + 1, slice.rank());
  for (int64_t at = 0; at < slice.elements(); ++at) {
    const int64_t outer = at / inner / n, position = begin + at / inner % n;
    f((outer * whole.dim(axis) + position) * inner + at % inner, at);
  }
}

void CopyToSlice(const AxisSlice& slice, Rect of_whole, const Tensor& from_whole, const Tensor& to_slice) {
  const size_t size = SizeOf(to_slice.type.dtype);
  slice.ForInnerLoops(of_whole, [&](int64_t whole, int64_t at, int64_t n) {
    std::memcpy(to_slice.data + at * size, from_whole.data + whole * size, n * size);
  });
}

void CopyToWhole(const AxisSlice& slice, Rect of_whole, const Tensor& from_slice, const Tensor& to_whole) {
  const size_t size = SizeOf(to_whole.type.dtype);
  slice.ForInnerLoops(of_whole, [&](int64_t whole, int64_t at, int64_t n) {
    std::memcpy(to_whole.data + whole * size, from_slice.data + at * size, n * size);
  });
}

absl::Status CheckAxis(const char* op, int axis, TypeSpan in) {
  const int rank = in[0].shape.rank();
  if (axis >= 0 && axis < rank) return absl::OkStatus();
  return ShapeError(op, absl::StrCat("axis ", axis, " is outside rank ", rank), in);
}

Shape WithoutAxis(const Shape& shape, int axis) {
  AxisSet axes = {};
  if (axis >= 0 && axis < shape.rank()) axes[axis] = true;
  return WithoutAxes(shape, axes);
}

absl::StatusOr<AxisSet> MarkAxes(const char* op, absl::Span<const int> axes, const TensorType& type) {
  AxisSet marked = {};
  for (int axis : axes) {
    const int front = FrontAxis(type.shape, axis);
    WEFT_RETURN_IF_ERROR(CheckAxis(op, front, {type}));
    if (std::exchange(marked[front], true))
      return ShapeError(op, absl::StrCat("axis ", axis, " is named twice"), {type});
  }
  return marked;
}

Shape WithoutAxes(const Shape& shape, const AxisSet& axes) {
  Shape kept;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!axes[i]) kept.Append(shape.dim(i));
  }
  return kept;
}

}  // namespace weft
