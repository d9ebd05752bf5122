// Axis i of y is axis axes[i] of x: y.dim(i) = x.dim(axes[i]). The kernel copies the elements.
#include <algorithm>
#include <numeric>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const PermuteAttrs p = attrs.as<PermuteAttrs>();
  unsigned seen = 0;
  Shape shape;
  for (int i = 0; i < p.rank; ++i) {
    shape.Append(in[0].shape.dim(p.axes[i]));
    seen |= 1u << p.axes[i];
  }
  WEFT_CHECK(p.rank == in[0].shape.rank() && seen == (1u << p.rank) - 1);  // Permute has checked them
  return Types{{in[0].dtype, shape}};
}

// Copies blocks of 16 rows by 16 columns of y, so that all rows of a block use a cache line of x before it is evicted.
// If rows of y are contiguous in x, copies them whole.
template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  constexpr int64_t kBlock = 16;
  if (tile.rows() <= 0 || tile.cols() <= 0) return;
  const PermuteAttrs p = a.attrs.as<PermuteAttrs>();
  const Shape& out = a.output_shape(0);
  const Shape& in = a.input_shape(0);
  Strides strides = {};
  for (int i = 0; i < p.rank; ++i) strides[i] = in.Product(p.axes[i] + 1, p.rank);
  const int64_t stride = p.rank == 0 ? 1 : strides[p.rank - 1], cols = out.cols();
  RowCursor cursor(out, strides, tile.row_begin);
  for (int64_t row = tile.row_begin; row < tile.row_end; row += kBlock) {
    const int64_t rows = std::min(kBlock, tile.row_end - row);
    const T* x[kBlock];
    for (int64_t r = 0; r < rows; ++r, cursor.Next()) x[r] = a.input<T>(0) + cursor.offset();
    T* y = a.output<T>(0) + row * cols;
    if (stride == 1) {
      for (int64_t r = 0; r < rows; ++r) {
        std::copy(x[r] + tile.col_begin, x[r] + tile.col_end, y + r * cols + tile.col_begin);
      }
      continue;
    }
    for (int64_t begin = tile.col_begin; begin < tile.col_end; begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, tile.col_end);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = begin; c < end; ++c) y[r * cols + c] = x[r][c * stride];
      }
    }
  }
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  return operand == 0 ? WholeRect(args.inputs[0].shape) : tile;
}

Var RecordPermute(Var x, const PermuteAttrs& attrs) { return Record(kPermute, {x}, Attrs::Of(attrs)); }

// dx = dy under the inverse permutation.
VarList Gradient(const GradientArgs& a) {
  const PermuteAttrs p = a.attrs.as<PermuteAttrs>();
  PermuteAttrs inverse = {.rank = p.rank};
  for (int i = 0; i < p.rank; ++i) inverse.axes[p.axes[i]] = i;
  return {RecordPermute(a.grad(0), inverse)};
}

void Reference(const ReferenceArgs& a) {
  const PermuteAttrs p = a.attrs.as<PermuteAttrs>();
  const Shape& in = a.input_types[0].shape;
  const Shape& out = a.output_types[0].shape;
  for (int64_t i = 0; i < out.elements(); ++i) {
    int64_t rest = i, from = 0;
    for (int axis = p.rank - 1; axis >= 0; --axis) {
      from += rest % out.dim(axis) * in.Product(p.axes[axis] + 1, p.rank);
      rest /= out.dim(axis);
    }
    a.outputs[0][i] = a.inputs[0][from];
  }
}

constexpr OpExample kExamples[] = {
    {.in = "[]", .record = [](VarSpan in) { return VarList{Permute(in[0], {})}; }},
    {.in = "[5]", .record = [](VarSpan in) { return VarList{Permute(in[0], {0})}; }},
    {.in = "[33,19]", .record = [](VarSpan in) { return VarList{Transpose(in[0], 0, 1)}; }, .out = "[19,33]"},
    {.in = "[2,3,4,5]", .record = [](VarSpan in) { return VarList{Transpose(in[0], 1, 2)}; }, .out = "[2,4,3,5]"},
    {.in = "[2,3,4,5]",
     .record =
         [](VarSpan in) {
           return VarList{Permute(in[0], {0, 2, -1, 1})};
         },
     .out = "[2,4,5,3]"},
    {.in = "[3,17,18]", .record = [](VarSpan in) { return VarList{Transpose(in[0], -1, 0)}; }, .out = "[18,17,3]"},
    {.in = "[2,1,3,1,2,2]",
     .record =
         [](VarSpan in) {
           return VarList{Permute(in[0], {5, 4, 3, 2, 1, 0})};
         }},
    {.in = "[0,4]", .record = [](VarSpan in) { return VarList{Transpose(in[0], 0, 1)}; }, .out = "[4,0]"},
    {.in = "bool[3,4]", .record = [](VarSpan in) { return VarList{Transpose(in[0], 0, 1)}; }, .out = "bool[4,3]"},
    {.in = "[2,3]",
     .record =
         [](VarSpan in) {
           return VarList{Permute(in[0], {1, 1})};
         },
     .error = "axis 1 is named twice"},
    {.in = "[2,3]", .record = [](VarSpan in) { return VarList{Permute(in[0], {0})}; }, .error = "1 axes, wanted all 2"},
    {.in = "[2,3]",
     .record =
         [](VarSpan in) {
           return VarList{Permute(in[0], {0, 2})};
         },
     .error = "axis 2 is outside rank 2"},
};

}  // namespace

constexpr OpDef kPermute = {.name = "permute",
                            .infer = Infer,
                            .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>, Kernel<int32_t>, Kernel<bool>},
                            .cut = Cut::kRows,
                            .access = Access,
                            .gradient = Gradient,
                            .reference = Reference,
                            .autocast = Autocast::kFollow,
                            .attrs = AttrOpsOf<PermuteAttrs>(),
                            .examples = kExamples};

Var Permute(Var x, AxisSpan axes) {
  return Composite("permute", {x}, [&]() -> absl::StatusOr<Var> {
    const Shape shape = x.shape();
    WEFT_RETURN_IF_ERROR(MarkAxes("permute", axes, x.type()).status());
    if (static_cast<int>(axes.size()) != shape.rank()) {
      return ShapeError("permute", absl::StrCat(axes.size(), " axes, wanted all ", shape.rank()), {x.type()});
    }
    PermuteAttrs attrs = {.rank = shape.rank()};
    for (int i = 0; i < attrs.rank; ++i) attrs.axes[i] = FrontAxis(shape, axes[i]);
    return RecordPermute(x, attrs);
  });
}

Var Transpose(Var x, int axis_a, int axis_b) {
  return Composite("transpose", {x}, [&]() -> absl::StatusOr<Var> {
    const int a = FrontAxis(x.shape(), axis_a), b = FrontAxis(x.shape(), axis_b);
    for (const int axis : {a, b}) WEFT_RETURN_IF_ERROR(CheckAxis("transpose", axis, {x.type()}));
    PermuteAttrs attrs = {.rank = x.shape().rank()};
    std::iota(attrs.axes.begin(), attrs.axes.begin() + attrs.rank, 0);
    std::swap(attrs.axes[a], attrs.axes[b]);
    return RecordPermute(x, attrs);
  });
}

}  // namespace weft
