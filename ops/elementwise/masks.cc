// These ops replace masked elements of x:
//   mask_fill: y = value where mask is true, else x. The mask broadcasts to x.
//   band_mask, for x [..., T, S]: y = x in columns p - left to p + right, else value. p is row + S - T, or the row's
//     element of a second input, positions i32 [B, T].
//   where: y = a where mask is true, else b. The inputs are a, b and mask, in this order and of one shape; a and b
//     have any dtype. The function Where(mask, a, b) first broadcasts its arguments.
// Triu and Tril are composed of mask_fill and other ops.
#include <algorithm>
#include <cmath>

#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/attention/attention.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/kernels/rows/rows.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> InferMaskFill(const Attrs& attrs, TypeSpan in) {
  WEFT_RETURN_IF_ERROR(CheckNumber("mask_fill", attrs.as<MaskAttrs>().value, in[0].dtype, in));
  if (in[1].dtype != kBool) return ShapeError("mask_fill", "the mask must be bool", in);
  if (Broadcast(in[0].shape, in[1].shape) != in[0].shape) {
    return ShapeError("mask_fill", "the mask does not broadcast to x", in);
  }
  return Types{in[0]};
}

template <class T>
void MaskFillKernel(const KernelArgs& a, Rect tile) {
  const T value = ConvertTo<T>(a.attrs.as<MaskAttrs>().value);
  ForInnerLoops(a.output_shape(0), a.input_shape(0), a.input_shape(1), tile, [&](const InnerLoop& r) {
    const T* x = a.input<T>(0) + r.a;
    const bool* mask = a.input<bool>(1) + r.b;
    T* y = a.output<T>(0) + r.out;
    if (r.b_stride != 0) {
      Selects<T>().select(mask, &value, 0, x, 1, y, r.n);
    } else if (*mask) {
      std::fill_n(y, r.n, value);
    } else if (x != y) {
      std::copy_n(x, r.n, y);
    }
  });
}

// dx = dy, or 0 where the mask is true.
VarList MaskFillGradient(const GradientArgs& a) { return {MaskFill(a.grad(0), a.input(1), 0), Var{}}; }

// Returns NaN for a masked element. The reference then replaces each NaN by the value, so x must have no NaN.
double Chosen(double x, double mask) { return mask != 0 ? std::nan("") : x; }
void MaskFillReference(const ReferenceArgs& a) {
  BinaryReference(a, Chosen);
  for (double& y : a.outputs[0]) y = std::isnan(y) ? a.attrs.as<MaskAttrs>().value : y;
}

constexpr OpExample kMaskFillExamples[] = {
    {.in = "[] bool[]", .record = RecordCall<MaskFill, -2>},
    {.in = "[3,37] bool[3,37]", .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], 0.5)}; }},
    {.in = "[5,19] bool[19]", .record = [](VarSpan in) { return VarList{MaskFill(in[0], in[1], -1e30)}; }},
    {.in = "[2,3,7] bool[2,1,7]", .record = RecordCall<MaskFill, 0>},
    {.in = "[6,7] bool[6,1]", .record = RecordCall<MaskFill, 3>},
    {.in = "[6,7] bool[]", .record = RecordCall<MaskFill, 3>},
    {.in = "i32[6] bool[6]", .record = RecordCall<MaskFill, -1>, .below = 9},
    {.in = "[0,3] bool[3]", .record = RecordCall<MaskFill, 3>},
    {.in = "[3] bool[2,3]", .record = RecordCall<MaskFill, 3>, .error = "does not broadcast to x"},
    {.in = "[3] i32[3]", .record = RecordCall<MaskFill, 3>, .error = "must be bool"},
};

absl::StatusOr<Types> InferBandMask(const Attrs& attrs, TypeSpan in) {
  WEFT_RETURN_IF_ERROR(CheckNumber("band_mask", attrs.as<BandMaskAttrs>().value, in[0].dtype, in));
  const Shape& x = in[0].shape;
  if (x.rank() < 2) return ShapeError("band_mask", "x needs rank >= 2", in);
  if (in.size() > 1 && (x.rank() < 3 || in[1] != TensorType{kI32, {x.dim(0), x.dim(-2)}})) {
    return ShapeError("band_mask", "wanted x [B,...,T,S] and positions i32[B,T]", in);
  }
  return Types{in[0]};
}

// Returns the index of the row's element of the positions.
int64_t TargetOf(const Shape& x, int64_t row) { return row / (x.rows() / x.dim(0)) * x.dim(-2) + row % x.dim(-2); }

template <class T>
void BandMaskKernel(const KernelArgs& a, Rect tile) {
  const Shape& shape = a.output_shape(0);
  const int64_t targets = shape.dim(-2), sources = shape.dim(-1);
  const BandMaskAttrs attrs = a.attrs.as<BandMaskAttrs>();
  const Band band(attrs.left, attrs.right);
  const T value = ConvertTo<T>(attrs.value);
  for (int64_t row = tile.row_begin; row < tile.row_end; ++row) {
    const T* x = a.input<T>(0) + row * sources;
    T* y = a.output<T>(0) + row * sources;
    const int64_t p =
        a.inputs.size() > 1 ? a.input<int32_t>(1)[TargetOf(shape, row)] : row % targets + sources - targets;
    const int64_t begin = std::clamp(band.BeginAt(p, sources), tile.col_begin, tile.col_end);
    const int64_t end = std::clamp(band.EndAt(p, sources), begin, tile.col_end);
    std::fill(y + tile.col_begin, y + begin, value);
    if (x != y) std::copy(x + begin, x + end, y + begin);
    std::fill(y + end, y + tile.col_end, value);
  }
}

// dx = dy, or 0 where x was masked.
VarList BandMaskGradient(const GradientArgs& a) {
  const BandMaskAttrs attrs = a.attrs.as<BandMaskAttrs>();
  if (a.inputs.size() == 1) return {BandMask(a.grad(0), attrs.left, attrs.right, 0)};
  return {BandMask(a.grad(0), attrs.left, attrs.right, 0, a.input(1)), Var{}};
}

void BandMaskReference(const ReferenceArgs& a) {
  const Shape& shape = a.input_types[0].shape;
  const auto [value, left, right] = a.attrs.as<BandMaskAttrs>();
  const int64_t target = shape.dim(-2), source = shape.dim(-1);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const double p = a.inputs.size() > 1 ? a.inputs[1][static_cast<size_t>(TargetOf(shape, i / source))]
                                         : static_cast<double>(i / source % target + source - target);
    const double distance = static_cast<double>(i % source) - p;
    const bool masked =
        (left >= 0 && distance < -static_cast<double>(left)) || (right >= 0 && distance > static_cast<double>(right));
    a.outputs[0][i] = masked ? value : a.inputs[0][i];
  }
}

template <int64_t left, int64_t right, int value>
VarList BandExample(VarSpan in) {
  return {BandMask(in[0], left, right, value, in.size() > 1 ? in[1] : Var())};
}

constexpr OpExample kBandMaskExamples[] = {
    {.in = "[1,1]", .record = RecordCall<CausalMask, -5>},
    {.in = "[17,17]", .record = [](VarSpan in) { return VarList{CausalMask(in[0], -1e30)}; }},
    {.in = "[2,3,5,9]", .record = RecordCall<CausalMask, 0>},  // four cached positions
    {.in = "[2,9,5]", .record = RecordCall<CausalMask, 2>},    // rows that see nothing
    {.in = "[0,3]", .record = RecordCall<CausalMask, 0>},
    {.in = "[2,5,9]", .record = BandExample<2, 0, -1>},    // a causal window
    {.in = "[2,3,9,5]", .record = BandExample<1, 1, -1>},  // on both sides
    {.in = "[17,17]", .record = BandExample<3, -1, 7>},    // no limit after
    {.in = "i32[4,4]", .record = BandExample<0, 0, -1>, .below = 9},
    {.in = "[5,5]", .record = BandExample<INT64_MAX, INT64_MAX, 7>},
    {.in = "[2,3,4,9] i32[2,4]", .record = BandExample<2, 0, -1>, .below = 9},
    {.in = "[3,1,5] i32[3,1]", .record = BandExample<-1, 1, 3>, .below = 5},
    {.in = "bool[2,1,3,7] i32[2,3]", .record = BandExample<1, 0, 1>, .below = 2},
    {.in = "bool[2,1,3,2] i32[2,3]",  // some positions are after the last source
     .record = BandExample<1, 0, 1>,
     .below = 9},
    {.in = "[0,3,4] i32[0,3]", .record = BandExample<1, 0, 1>},
    {.in = "[4,4] i32[4,4]", .record = BandExample<1, 0, 1>, .error = "positions i32[B,T]"},
    {.in = "[3]", .record = RecordCall<CausalMask, 0>, .error = "rank >= 2"},
    {.in = "[2,3,4,9] i32[2,3]", .record = BandExample<2, 0, -1>, .error = "positions i32[B,T]"},
};

absl::StatusOr<Types> InferWhere(const Attrs&, TypeSpan in) {
  if (in[2].dtype != kBool) return ShapeError("where", "the mask must be bool", in);
  if (in[1].dtype != in[0].dtype) return ShapeError("where", "dtypes differ", in);
  if (in[1].shape != in[0].shape || in[2].shape != in[0].shape) return ShapeError("where", "shapes differ", in);
  return Types{in[0]};
}

template <class T>
void WhereKernel(const KernelArgs& a, Rect tile) {
  ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t n) {
    Selects<T>().select(a.input<bool>(2) + begin, a.input<T>(0) + begin, 1, a.input<T>(1) + begin, 1,
                        a.output<T>(0) + begin, n);
  });
}

// da = dy where the mask is true, else 0; db = dy where the mask is false, else 0.
VarList WhereGradient(const GradientArgs& a) {
  const Var dy = a.grad(0), mask = a.input(2);
  return {MaskFill(dy, Not(mask), 0), MaskFill(dy, mask, 0), Var{}};
}

void WhereReference(const ReferenceArgs& a) {
  for (size_t e = 0; e < a.outputs[0].size(); ++e) a.outputs[0][e] = a.inputs[a.inputs[2][e] != 0 ? 0 : 1][e];
}

VarList WhereExample(VarSpan in) { return {Where(in[2], in[0], in[1])}; }

constexpr OpExample kWhereExamples[] = {
    {.in = "[] [] bool[]", .record = WhereExample, .out = "[]"},
    {.in = "[3,37] [3,37] bool[3,37]", .record = WhereExample},
    {.in = "[5,1] [19] bool[5,19]", .record = WhereExample, .out = "[5,19]"},
    {.in = "[7] [] bool[3,1,1]", .record = WhereExample, .out = "[3,1,7]"},
    {.in = "i32[6] i32[6] bool[6]", .record = WhereExample, .below = 9},
    {.in = "bool[6] bool[6] bool[6]", .record = WhereExample},
    {.in = "[0,3] [3] bool[3]", .record = WhereExample, .out = "[0,3]"},
    {.in = "[3] [4] bool[]", .record = WhereExample, .error = "don't broadcast"},
    {.in = "[3] i32[3] bool[3]", .record = WhereExample, .error = "dtypes differ"},
    {.in = "[3] [3] i32[3]", .record = WhereExample, .error = "must be bool"},
    {.in = "[3] [] bool[3]", .error = "shapes differ"},
};

// Returns a mask [T, S] that is true where column - row < `diagonal`, for x [..., T, S].
absl::StatusOr<Var> BelowDiagonal(const char* op, Var x, int64_t diagonal) {
  if (x.shape().rank() < 2) return ShapeError(op, "x needs rank >= 2", {x.type()});
  const Var rows = Reshape(Iota(x.tape, kI32, x.dim(-2)), {x.dim(-2), 1}), columns = Iota(x.tape, kI32, x.dim(-1));
  diagonal = std::clamp(diagonal, -x.dim(-2), x.dim(-1));
  return Less(columns - rows, Number(rows, static_cast<double>(diagonal)));
}

}  // namespace

constexpr OpDef kMaskFill = {.name = "mask_fill",
                             .infer = InferMaskFill,
                             .kernels = {MaskFillKernel<float>, MaskFillKernel<double>, MaskFillKernel<BF16>,
                                         MaskFillKernel<int32_t>, MaskFillKernel<bool>},
                             .cut = Cut::kBoth,
                             .access = BroadcastAccess,
                             .in_place = 0,
                             .gradient = MaskFillGradient,
                             .reference = MaskFillReference,
                             .autocast = Autocast::kFollow,
                             .attrs = AttrOpsOf<MaskAttrs>(),
                             .examples = kMaskFillExamples};
Var MaskFill(Var x, Var mask, double value) { return Record(kMaskFill, {x, mask}, Attrs::Of(MaskAttrs{value})); }

constexpr OpDef kBandMask = {.name = "band_mask",
                             .infer = InferBandMask,
                             .kernels = {BandMaskKernel<float>, BandMaskKernel<double>, BandMaskKernel<BF16>,
                                         BandMaskKernel<int32_t>, BandMaskKernel<bool>},
                             .cut = Cut::kBoth,
                             .in_place = 0,
                             .gradient = BandMaskGradient,
                             .reference = BandMaskReference,
                             .autocast = Autocast::kFollow,
                             .attrs = AttrOpsOf<BandMaskAttrs>(),
                             .examples = kBandMaskExamples};
Var BandMask(Var x, int64_t left, int64_t right, double value, Var positions) {
  const Attrs attrs = Attrs::Of(BandMaskAttrs{value, left, right});
  return positions.tape != nullptr ? Record(kBandMask, {x, positions}, attrs) : Record(kBandMask, {x}, attrs);
}
Var CausalMask(Var x, double value) { return BandMask(x, -1, 0, value); }

constexpr OpDef kWhere = {
    .name = "where",
    .infer = InferWhere,
    .kernels = {WhereKernel<float>, WhereKernel<double>, WhereKernel<BF16>, WhereKernel<int32_t>, WhereKernel<bool>},
    .cut = Cut::kBoth,
    .in_place = 0,
    .gradient = WhereGradient,
    .reference = WhereReference,
    .autocast = Autocast::kFollow,
    .examples = kWhereExamples};

Var Where(Var mask, Var a, Var b) {
  return Composite("where", {mask, a, b}, [&]() -> absl::StatusOr<Var> {
    const std::optional<Shape> values = Broadcast(a.shape(), b.shape());
    const std::optional<Shape> shape = values ? Broadcast(*values, mask.shape()) : std::nullopt;
    if (!shape) return ShapeError("where", "the inputs don't broadcast", {mask.type(), a.type(), b.type()});
    return Record(kWhere, {BroadcastTo(a, *shape), BroadcastTo(b, *shape), BroadcastTo(mask, *shape)});
  });
}

Var Triu(Var x, int64_t diagonal) {
  return Composite("triu", {x}, [&]() -> absl::StatusOr<Var> {
    WEFT_ASSIGN_OR_RETURN(const Var below, BelowDiagonal("triu", x, diagonal));
    return MaskFill(x, below, 0);
  });
}

Var Tril(Var x, int64_t diagonal) {
  return Composite("tril", {x}, [&]() -> absl::StatusOr<Var> {
    WEFT_ASSIGN_OR_RETURN(const Var kept, BelowDiagonal("tril", x, std::min(diagonal, x.dim(-1)) + 1));
    return MaskFill(x, Not(kept), 0);
  });
}

}  // namespace weft
