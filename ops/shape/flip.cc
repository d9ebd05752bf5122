// y[..., i, ...] = x[..., n - 1 - i, ...] along one axis.
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  WEFT_RETURN_IF_ERROR(CheckAxis("flip", attrs.as<AxisAttrs>().axis, in));
  return Types{in[0]};
}

bool FlipsColumns(const Attrs& attrs, const Shape& shape) { return attrs.as<AxisAttrs>().axis == shape.rank() - 1; }

// If the axis is the last one, a tile reads the mirrored columns of x. Otherwise it may read its columns of any row.
Rect Access(const OpArgs& args, int operand, Rect tile) {
  const Shape& shape = args.inputs[0].shape;
  if (operand != 0) return tile;
  if (!FlipsColumns(args.attrs, shape)) return {0, shape.rows(), tile.col_begin, tile.col_end};
  return {tile.row_begin, tile.row_end, shape.cols() - tile.col_end, shape.cols() - tile.col_begin};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const Shape& shape = a.output_shape(0);
  const int axis = a.attrs.as<AxisAttrs>().axis;
  const bool columns = FlipsColumns(a.attrs, shape);
  const int64_t cols = shape.cols(), n = shape.dim(axis), inner = shape.Product(axis + 1, shape.rank() - 1);
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row) {
    const int64_t from = columns ? row : row + (n - 1 - 2 * (row / inner % n)) * inner;
    const T* const x = a.input<T>(0) + from * cols;
    T* const y = a.output<T>(0) + row * cols;
    if (columns) {
      std::reverse_copy(x + cols - tile.col_end, x + cols - tile.col_begin, y + tile.col_begin);
    } else {
      std::copy(x + tile.col_begin, x + tile.col_end, y + tile.col_begin);
    }
  }
}

// dx = flip(dy).
VarList Gradient(const GradientArgs& a) { return {Flip(a.grad(0), a.attrs.as<AxisAttrs>().axis)}; }

void Reference(const ReferenceArgs& a) {
  const Shape& shape = a.input_types[0].shape;
  const int axis = a.attrs.as<AxisAttrs>().axis;
  const int64_t n = shape.dim(axis), inner = shape.Product(axis + 1, shape.rank());
  for (int64_t e = 0; e < shape.elements(); ++e) {
    a.outputs[0][e + (n - 1 - 2 * (e / inner % n)) * inner] = a.inputs[0][e];
  }
}

template <int axis>
VarList Example(VarSpan in) {
  return {Flip(in[0], axis)};
}

constexpr OpExample kExamples[] = {
    {.in = "[1]", .record = Example<0>, .out = "[1]"},
    {.in = "[37]", .record = Example<0>},
    {.in = "[5,19]", .record = Example<-1>},
    {.in = "[5,19]", .record = Example<0>},
    {.in = "[2,5,3]", .record = Example<1>},
    {.in = "[67,130]", .record = Example<1>},
    {.in = "i32[2,7]", .record = Example<1>, .below = 50},
    {.in = "bool[7]", .record = Example<0>},
    {.in = "[0,3]", .record = Example<1>},
    {.in = "[3,0]", .record = Example<0>},
    {.in = "[4,3]", .record = Example<2>, .error = "axis 2 is outside rank 2"},
};

}  // namespace

constexpr OpDef kFlip = {.name = "flip",
                         .infer = Infer,
                         .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>, Kernel<int32_t>, Kernel<bool>},
                         .cut = Cut::kBoth,
                         .access = Access,
                         .gradient = Gradient,
                         .reference = Reference,
                         .autocast = Autocast::kFollow,
                         .attrs = AttrOpsOf<AxisAttrs>(),
                         .examples = kExamples};
Var Flip(Var x, int axis) { return Record(kFlip, {x}, Attrs::Of(AxisAttrs{FrontAxis(x.shape(), axis)})); }

}  // namespace weft
