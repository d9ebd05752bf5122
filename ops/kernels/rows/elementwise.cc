// If a tile has whole rows, and each operand has the output's shape or is a scalar, the tile is one inner loop. Any
// other tile has an inner loop for each row.
#include "weft/ops/kernels/rows/elementwise.h"

#include "weft/base/status.h"

namespace weft {

Strides BroadcastStrides(const Shape& out, const Shape& operand) {
  Strides strides = {};
  int64_t stride = 1;
  for (int axis = out.rank() - 1; axis >= 0; --axis) {
    const int64_t size = operand.dim(axis - out.rank());
    strides[axis] = size == 1 ? 0 : stride;
    stride *= size;
  }
  return strides;
}

int64_t BroadcastOffset(const Shape& out, const Shape& operand, int64_t i) {
  int64_t offset = 0, stride = 1;
  for (int axis = -1; axis >= -out.rank(); --axis) {
    if (operand.dim(axis) != 1) offset += i % out.dim(axis) * stride;
    i /= out.dim(axis);
    stride *= operand.dim(axis);
  }
  return offset;
}

RowCursor::RowCursor(const Shape& shape, const Strides& strides, int64_t row)
    : leading_(std::max(shape.rank() - 1, 0)), shape_(shape), strides_(strides) {
  for (int axis = leading_ - 1; axis >= 0; --axis) {
    index_[axis] = row % shape.dim(axis);
    row /= shape.dim(axis);
    offset_ += index_[axis] * strides[axis];
  }
}

void RowCursor::Next() {
  for (int axis = leading_ - 1; axis >= 0; --axis) {
    offset_ += strides_[axis];
    if (++index_[axis] < shape_.dim(axis)) return;
    offset_ -= index_[axis] * strides_[axis];
    index_[axis] = 0;
  }
}

void ForInnerLoops(const Shape& out, const Shape& a, const Shape& b, Rect tile,
                   absl::FunctionRef<void(const InnerLoop&)> f) {
  if (tile.rows() <= 0 || tile.cols() <= 0) return;
  const int64_t cols = out.cols(), elements = out.elements();
  const auto whole_or_scalar = [&](const Shape& s) { return s.elements() == elements || s.elements() == 1; };
  if (tile.cols() == cols && whole_or_scalar(a) && whole_or_scalar(b)) {
    const int64_t begin = tile.row_begin * cols;
    const int a_stride = a.elements() == elements, b_stride = b.elements() == elements;
    f({begin, a_stride * begin, b_stride * begin, a_stride, b_stride, tile.rows() * cols});
    return;
  }
  const int a_stride = a.cols() == cols, b_stride = b.cols() == cols;
  RowCursor a_row(out, BroadcastStrides(out, a), tile.row_begin), b_row(out, BroadcastStrides(out, b), tile.row_begin);
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row, a_row.Next(), b_row.Next()) {
    f({row * cols + tile.col_begin, a_row.offset() + a_stride * tile.col_begin,
       b_row.offset() + b_stride * tile.col_begin, a_stride, b_stride, tile.cols()});
  }
}

void ForInnerLoops(const Shape& out, Rect tile, absl::FunctionRef<void(int64_t, int64_t)> f) {
  if (tile.rows() <= 0 || tile.cols() <= 0) return;
  const int64_t cols = out.cols();
  if (tile.cols() == cols) return f(tile.row_begin * cols, tile.rows() * cols);
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row) f(row * cols + tile.col_begin, tile.cols());
}

// Each size of an input is 1 or the output's size. So if an input has as many rows as a non-empty output, the sizes of
// their leading axes are equal.
Rect BroadcastAccess(const OpArgs& args, int operand, Rect tile) {
  if (operand >= static_cast<int>(args.inputs.size())) return tile;
  const Shape& out = args.outputs[0].shape;
  const Shape& shape = args.inputs[operand].shape;
  const Rect whole = WholeRect(shape), rows = shape.rows() == out.rows() ? tile : whole;
  const Rect cols = shape.cols() == out.cols() ? tile : whole;
  return {rows.row_begin, rows.row_end, cols.col_begin, cols.col_end};
}

absl::StatusOr<Types> BroadcastTypes(const char* op, TypeSpan in) {
  if (in[0].dtype != in[1].dtype) return ShapeError(op, "dtypes differ", in);
  const std::optional<Shape> shape = Broadcast(in[0].shape, in[1].shape);
  if (!shape.has_value()) return ShapeError(op, "shapes don't broadcast", in);
  return Types{{in[0].dtype, *shape}};
}

void BinaryReference(const ReferenceArgs& a, double (*function)(double, double)) {
  const Shape& out = a.output_types[0].shape;
  for (int64_t i = 0; i < out.elements(); ++i) {
    const auto operand = [&](int k) { return a.inputs[k][BroadcastOffset(out, a.input_types[k].shape, i)]; };
    a.outputs[0][i] = function(operand(0), operand(1));
  }
}

absl::Status CheckNumber(const char* op, double value, DType dtype, TypeSpan in) {
  if (dtype != kI32 || value == static_cast<double>(ConvertTo<int32_t>(value))) return absl::OkStatus();
  return ShapeError(op, absl::StrCat("the number ", value, " is not an i32"), in);
}

}  // namespace weft
