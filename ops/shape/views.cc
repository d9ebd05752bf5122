// These ops copy elements of x to other positions. In memory, neighbours of y along an axis are a fixed distance apart
// in x:
//   permute: axis i of y is axis axes[i] of x, so y.dim(i) = x.dim(axes[i]).
//   flip: y[..., i, ...] = x[..., n - 1 - i, ...] along one axis.
//   broadcast_to: x is repeated along new axes, and along axes of size 1.
#include <algorithm>
#include <numeric>

#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/axis.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Element [i, j, ...] of y is element begin + i · strides[0] + j · strides[1] + ... of x.
struct View {
  int64_t begin = 0;
  Strides strides = {};  // along the axes of y
};

// Copies blocks of 16 rows by 16 columns of y, so that all rows of a block use a cache line of x before it is evicted.
// If rows of y are contiguous in x, or repeat an element, writes them whole.
template <class T, View (*view_of)(const Attrs&, const Shape& x, const Shape& y)>
void CopyView(const KernelArgs& a, Rect tile) {
  constexpr int64_t kBlock = 16;
  if (tile.rows() <= 0 || tile.cols() <= 0) return;
  const Shape& out = a.output_shape(0);
  const auto [begin, strides] = view_of(a.attrs, a.input_shape(0), out);
  const int64_t stride = out.rank() == 0 ? 1 : strides[out.rank() - 1], cols = out.cols();
  RowCursor cursor(out, strides, tile.row_begin);
  for (int64_t row = tile.row_begin; row < tile.row_end; row += kBlock) {
    const int64_t rows = std::min(kBlock, tile.row_end - row);
    const T* x[kBlock];
    for (int64_t r = 0; r < rows; ++r, cursor.Next()) x[r] = a.input<T>(0) + begin + cursor.offset();
    T* y = a.output<T>(0) + row * cols;
    if (stride == 0 || stride == 1) {
      for (int64_t r = 0; r < rows; ++r) {
        T* const to = y + r * cols + tile.col_begin;
        stride == 0 ? std::fill_n(to, tile.cols(), *x[r]) : std::copy_n(x[r] + tile.col_begin, tile.cols(), to);
      }
      continue;
    }
    for (int64_t first = tile.col_begin; first < tile.col_end; first += kBlock) {
      const int64_t end = std::min(first + kBlock, tile.col_end);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = first; c < end; ++c) y[r * cols + c] = x[r][c * stride];
      }
    }
  }
}
template <View (*view_of)(const Attrs&, const Shape& x, const Shape& y)>
constexpr std::array<KernelFunction, kDTypeCount> kCopies = {CopyView<float, view_of>, CopyView<double, view_of>,
                                                             CopyView<BF16, view_of>, CopyView<int32_t, view_of>,
                                                             CopyView<bool, view_of>};

absl::StatusOr<Types> InferPermute(const Attrs& attrs, TypeSpan in) {
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

View PermuteView(const Attrs& attrs, const Shape& x, const Shape&) {
  const PermuteAttrs p = attrs.as<PermuteAttrs>();
  View view;
  for (int i = 0; i < p.rank; ++i) view.strides[i] = x.Product(p.axes[i] + 1, p.rank);
  return view;
}

Rect PermuteAccess(const OpArgs& args, int operand, Rect tile) {
  return operand == 0 ? WholeRect(args.inputs[0].shape) : tile;
}

Var RecordPermute(Var x, const PermuteAttrs& attrs) { return Record(kPermute, {x}, Attrs::Of(attrs)); }

// dx = dy under the inverse permutation.
VarList PermuteGradient(const GradientArgs& a) {
  const PermuteAttrs p = a.attrs.as<PermuteAttrs>();
  PermuteAttrs inverse = {.rank = p.rank};
  for (int i = 0; i < p.rank; ++i) inverse.axes[p.axes[i]] = i;
  return {RecordPermute(a.grad(0), inverse)};
}

void PermuteReference(const ReferenceArgs& a) {
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

constexpr OpExample kPermuteExamples[] = {
    {.in = "[]", .record = RecordList<Permute>},
    {.in = "[5]", .record = RecordList<Permute, 0>},
    {.in = "[33,19]", .record = RecordCall<Transpose, 0, 1>, .out = "[19,33]"},
    {.in = "[2,3,4,5]", .record = RecordCall<Transpose, 1, 2>, .out = "[2,4,3,5]"},
    {.in = "[2,3,4,5]", .record = RecordList<Permute, 0, 2, -1, 1>, .out = "[2,4,5,3]"},
    {.in = "[3,17,18]", .record = RecordCall<Transpose, -1, 0>, .out = "[18,17,3]"},
    {.in = "[2,1,3,1,2,2]", .record = RecordList<Permute, 5, 4, 3, 2, 1, 0>},
    {.in = "[0,4]", .record = RecordCall<Transpose, 0, 1>, .out = "[4,0]"},
    {.in = "bool[3,4]", .record = RecordCall<Transpose, 0, 1>, .out = "bool[4,3]"},
    {.in = "[2,3]", .record = RecordList<Permute, 1, 1>, .error = "axis 1 is named twice"},
    {.in = "[2,3]", .record = RecordList<Permute, 0>, .error = "1 axes, wanted all 2"},
    {.in = "[2,3]", .record = RecordList<Permute, 0, 2>, .error = "axis 2 is outside rank 2"},
};

absl::StatusOr<Types> InferFlip(const Attrs& attrs, TypeSpan in) {
  WEFT_RETURN_IF_ERROR(CheckAxis("flip", attrs.as<AxisAttrs>().axis, in));
  return Types{in[0]};
}

bool FlipsColumns(const Attrs& attrs, const Shape& shape) { return attrs.as<AxisAttrs>().axis == shape.rank() - 1; }

// If the axis is the last one, a tile reads the mirrored columns of x. Otherwise it may read its columns of any row.
Rect FlipAccess(const OpArgs& args, int operand, Rect tile) {
  const Shape& shape = args.inputs[0].shape;
  if (operand != 0) return tile;
  if (!FlipsColumns(args.attrs, shape)) return {0, shape.rows(), tile.col_begin, tile.col_end};
  return {tile.row_begin, tile.row_end, shape.cols() - tile.col_end, shape.cols() - tile.col_begin};
}

View FlipView(const Attrs& attrs, const Shape& x, const Shape&) {
  const int axis = attrs.as<AxisAttrs>().axis;
  View view;
  for (int i = 0; i < x.rank(); ++i) view.strides[i] = x.Product(i + 1, x.rank());
  view.begin = (x.dim(axis) - 1) * view.strides[axis];
  view.strides[axis] *= -1;
  return view;
}

// dx = flip(dy).
VarList FlipGradient(const GradientArgs& a) { return {Flip(a.grad(0), a.attrs.as<AxisAttrs>().axis)}; }

void FlipReference(const ReferenceArgs& a) {
  const Shape& shape = a.input_types[0].shape;
  const int axis = a.attrs.as<AxisAttrs>().axis;
  const int64_t n = shape.dim(axis), inner = shape.Product(axis + 1, shape.rank());
  for (int64_t e = 0; e < shape.elements(); ++e) {
    a.outputs[0][e + (n - 1 - 2 * (e / inner % n)) * inner] = a.inputs[0][e];
  }
}

constexpr OpExample kFlipExamples[] = {
    {.in = "[1]", .record = RecordCall<Flip, 0>, .out = "[1]"},
    {.in = "[37]", .record = RecordCall<Flip, 0>},
    {.in = "[5,19]", .record = RecordCall<Flip, -1>},
    {.in = "[5,19]", .record = RecordCall<Flip, 0>},
    {.in = "[2,5,3]", .record = RecordCall<Flip, 1>},
    {.in = "[67,130]", .record = RecordCall<Flip, 1>},
    {.in = "i32[2,7]", .record = RecordCall<Flip, 1>, .below = 50},
    {.in = "bool[7]", .record = RecordCall<Flip, 0>},
    {.in = "[0,3]", .record = RecordCall<Flip, 1>},
    {.in = "[3,0]", .record = RecordCall<Flip, 0>},
    {.in = "[4,3]", .record = RecordCall<Flip, 2>, .error = "axis 2 is outside rank 2"},
};

absl::StatusOr<Types> InferBroadcast(const Attrs& attrs, TypeSpan in) {
  const Shape shape = attrs.as<ShapeAttrs>().shape;
  if (!shape.valid() || Broadcast(in[0].shape, shape) != shape) {
    return ShapeError("broadcast_to", absl::StrCat(ToString(in[0].shape), " can't be broadcast to ", ToString(shape)),
                      in);
  }
  return Types{{in[0].dtype, shape}};
}

View BroadcastView(const Attrs&, const Shape& x, const Shape& y) { return {.strides = BroadcastStrides(y, x)}; }

// dx = dy, summed over the axes along which x was repeated.
VarList BroadcastGradient(const GradientArgs& a) { return {SumTo(a.grad(0), a.input(0).shape())}; }

double First(double x, double) { return x; }
void BroadcastReference(const ReferenceArgs& a) {
  const TensorType types[] = {a.input_types[0], a.output_types[0]};
  const std::vector<double> inputs[] = {a.inputs[0], std::vector<double>(a.outputs[0].size())};
  BinaryReference({a.attrs, types, a.output_types, inputs, a.outputs}, First);
}

constexpr OpExample kBroadcastExamples[] = {
    {.in = "[]", .record = RecordList<BroadcastTo, 3, 5>, .out = "[3,5]"},
    {.in = "[1]", .record = RecordList<BroadcastTo, 1, 1>, .out = "[1,1]"},
    {.in = "[19]", .record = RecordList<BroadcastTo, 4, 19>, .out = "[4,19]"},
    {.in = "[5,1]", .record = RecordList<BroadcastTo, 2, 5, 33>, .out = "[2,5,33]"},
    {.in = "[2,1,3]", .record = RecordList<BroadcastTo, 2, 7, 3>, .out = "[2,7,3]"},
    {.in = "bool[3,1]", .record = RecordList<BroadcastTo, 3, 4>, .out = "bool[3,4]"},
    {.in = "[1]", .record = RecordList<BroadcastTo, 4, 0>, .out = "[4,0]"},
    {.in = "[2,3]", .record = RecordList<BroadcastTo, 3, 3>, .error = "[2,3] can't be broadcast to [3,3]"},
    {.in = "[2,3]", .record = RecordList<BroadcastTo, 3>, .error = "can't be broadcast"},
};

}  // namespace

constexpr OpDef kPermute = {.name = "permute",
                            .infer = InferPermute,
                            .kernels = kCopies<PermuteView>,
                            .cut = Cut::kRows,
                            .access = PermuteAccess,
                            .gradient = PermuteGradient,
                            .reference = PermuteReference,
                            .autocast = Autocast::kFollow,
                            .attrs = AttrOpsOf<PermuteAttrs>(),
                            .examples = kPermuteExamples};

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

constexpr OpDef kFlip = {.name = "flip",
                         .infer = InferFlip,
                         .kernels = kCopies<FlipView>,
                         .cut = Cut::kBoth,
                         .access = FlipAccess,
                         .gradient = FlipGradient,
                         .reference = FlipReference,
                         .autocast = Autocast::kFollow,
                         .attrs = AttrOpsOf<AxisAttrs>(),
                         .examples = kFlipExamples};
Var Flip(Var x, int axis) { return Record(kFlip, {x}, Attrs::Of(AxisAttrs{FrontAxis(x.shape(), axis)})); }

constexpr OpDef kBroadcastTo = {.name = "broadcast_to",
                                .infer = InferBroadcast,
                                .kernels = kCopies<BroadcastView>,
                                .cut = Cut::kBoth,
                                .access = BroadcastAccess,
                                .gradient = BroadcastGradient,
                                .reference = BroadcastReference,
                                .autocast = Autocast::kFollow,
                                .attrs = AttrOpsOf<ShapeAttrs>(),
                                .examples = kBroadcastExamples};
Var BroadcastTo(Var x, const Shape& shape) {
  return x.shape() == shape ? x : Record(kBroadcastTo, {x}, Attrs::Of(ShapeAttrs{shape}));
}

}  // namespace weft
