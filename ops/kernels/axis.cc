#include "weft/ops/kernels/axis.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"

namespace weft {

int64_t Part::PartRow(int64_t whole_row) const {
  const int64_t whole_rows = whole.dim(axis) * inner(), part_rows = part.dim(axis) * inner();
  if (whole_rows == 0) return 0;
  const int64_t inside = whole_row % whole_rows - begin * inner();
  return whole_row / whole_rows * part_rows + std::clamp<int64_t>(inside, 0, part_rows);
}

int64_t Part::WholeRow(int64_t part_row) const {
  const int64_t whole_rows = whole.dim(axis) * inner(), part_rows = part.dim(axis) * inner();
  return part_row / part_rows * whole_rows + begin * inner() + part_row % part_rows;
}

Rect Part::InPart(Rect r) const {
  if (!last()) return {PartRow(r.row_begin), PartRow(r.row_end), r.col_begin, r.col_end};
  const int64_t cols = part.cols();
  return {r.row_begin, r.row_end, std::clamp<int64_t>(r.col_begin - begin, 0, cols),
          std::clamp<int64_t>(r.col_end - begin, 0, cols)};
}

Rect Part::InWhole(Rect r) const {
  if (r.rows() <= 0 || r.cols() <= 0) return {};
  if (last()) return {r.row_begin, r.row_end, r.col_begin + begin, r.col_end + begin};
  return {WholeRow(r.row_begin), WholeRow(r.row_end - 1) + 1, r.col_begin, r.col_end};
}

void Part::ForRuns(Rect of_whole, absl::FunctionRef<void(int64_t, int64_t, int64_t)> f) const {
  const Rect r = InPart(of_whole);
  if (r.rows() <= 0 || r.cols() <= 0) return;
  const int64_t whole_cols = whole.cols(), part_cols = part.cols();
  if (last()) {
    for (int64_t row = r.row_begin; row < r.row_end; ++row) {
      f(row * whole_cols + begin + r.col_begin, row * part_cols + r.col_begin, r.cols());
    }
    return;
  }
  const int64_t group = part.dim(axis) * inner();  // rows that are also neighbours in the whole
  for (int64_t row = r.row_begin; row < r.row_end;) {
    const int64_t end = std::min(r.row_end, (row / group + 1) * group), whole_row = WholeRow(row);
    if (r.cols() == whole_cols) {
      f(whole_row * whole_cols, row * part_cols, (end - row) * whole_cols);
    } else {
      for (int64_t i = 0; i < end - row; ++i) {
        f((whole_row + i) * whole_cols + r.col_begin, (row + i) * part_cols + r.col_begin, r.cols());
      }
    }
    row = end;
  }
}

void CopyToPart(const Part& part, Rect of_whole, const Tensor& from_whole, const Tensor& to_part) {
  const size_t size = SizeOf(to_part.type.dtype);
  part.ForRuns(of_whole, [&](int64_t whole, int64_t at, int64_t n) {
    std::memcpy(to_part.data + at * size, from_whole.data + whole * size, n * size);
  });
}

void CopyToWhole(const Part& part, Rect of_whole, const Tensor& from_part, const Tensor& to_whole) {
  const size_t size = SizeOf(to_whole.type.dtype);
  part.ForRuns(of_whole, [&](int64_t whole, int64_t at, int64_t n) {
    std::memcpy(to_whole.data + whole * size, from_part.data + at * size, n * size);
  });
}

absl::Status CheckAxis(const char* op, int axis, TypeSpan in) {
  const int rank = in[0].shape.rank();
  if (axis >= 0 && axis < rank) return absl::OkStatus();
  return ShapeError(op, absl::StrCat("axis ", axis, " is outside rank ", rank), in);
}

Shape WithoutAxis(const Shape& shape, int axis) {
  Shape rest;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != axis) rest.Append(shape.dim(i));
  }
  return rest;
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
