// slice: y = x[..., begin:end, ...] along one axis.
// pad: y = x with elements of one value before and after it along one axis.
//
// The gradient of slice is a pad, and the gradient of pad is a slice.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> InferSlice(const Attrs& attrs, TypeSpan in) {
  const auto [axis, begin, end] = attrs.as<SliceAttrs>();
  WEFT_RETURN_IF_ERROR(CheckAxis("slice", axis, in));
  Shape shape = in[0].shape;
  if (begin < 0 || begin > end || end > shape.dim(axis)) {
    return ShapeError("slice", absl::StrCat(begin, ":", end, " does not lie in 0:", shape.dim(axis)), in);
  }
  shape.set_dim(axis, end - begin);
  return Types{{in[0].dtype, shape}};
}

AxisSlice Sliced(const Attrs& attrs, const Shape& x, const Shape& y) {
  const auto [axis, begin, end] = attrs.as<SliceAttrs>();
  return {.whole = x, .slice = y, .axis = axis, .begin = begin};
}

Rect SliceAccess(const OpArgs& args, int operand, Rect tile) {
  return operand == 0 ? Sliced(args.attrs, args.inputs[0].shape, args.outputs[0].shape).InWhole(tile) : tile;
}

void SliceKernel(const KernelArgs& a, Rect tile) {
  const AxisSlice slice = Sliced(a.attrs, a.input_shape(0), a.output_shape(0));
  CopyToSlice(slice, slice.InWhole(tile), a.inputs[0], a.outputs[0]);
}

// dx = dy, padded with zeros to the shape of x.
VarList SliceGradient(const GradientArgs& a) {
  const auto [axis, begin, end] = a.attrs.as<SliceAttrs>();
  return {Pad(a.grad(0), axis, begin, a.input(0).dim(axis) - end)};
}

void SliceReference(const ReferenceArgs& a) {
  const auto [axis, begin, end] = a.attrs.as<SliceAttrs>();
  const AxisSlice slice = {a.input_types[0].shape, a.output_types[0].shape, axis, begin};
  slice.ForElements([&](int64_t whole, int64_t at) { a.outputs[0][at] = a.inputs[0][whole]; });
}

constexpr OpExample kSliceExamples[] = {
    {.in = "[1]", .record = [](VarSpan in) { return VarList{Slice(in[0], 0, 0, 1)}; }, .out = "[1]"},
    {.in = "[37]", .record = [](VarSpan in) { return VarList{Slice(in[0], 0, 5, 36)}; }, .out = "[31]"},
    {.in = "[5,19]", .record = [](VarSpan in) { return VarList{Slice(in[0], -1, 2, 19)}; }, .out = "[5,17]"},
    {.in = "[2,5,3]", .record = [](VarSpan in) { return VarList{Slice(in[0], 1, 1, 4)}; }, .out = "[2,3,3]"},
    {.in = "[4,2,3,5]", .record = [](VarSpan in) { return VarList{Slice(in[0], 0, 3, 4)}; }, .out = "[1,2,3,5]"},
    {.in = "[4,3]", .record = [](VarSpan in) { return VarList{Slice(in[0], 0, 2, 2)}; }, .out = "[0,3]"},
    {.in = "i32[7]", .record = [](VarSpan in) { return VarList{Slice(in[0], 0, 1, 3)}; }, .below = 50, .out = "i32[2]"},
    {.in = "[4,3]",
     .record = [](VarSpan in) { return VarList{Slice(in[0], 2, 0, 1)}; },
     .error = "axis 2 is outside rank 2"},
    {.in = "[4,3]",
     .record = [](VarSpan in) { return VarList{Slice(in[0], 1, 1, 4)}; },
     .error = "1:4 does not lie in 0:3"},
    {.in = "[4,3]", .record = [](VarSpan in) { return VarList{Slice(in[0], 1, 2, 1)}; }, .error = "2:1"},
};

struct PadAttrs {
  int32_t axis = 0;
  int64_t before = 0;
  int64_t after = 0;
  double value = 0;
  auto Fields() const {
    return std::tuple{AttrField{"axis", axis}, AttrField{"before", before}, AttrField{"after", after},
                      AttrField{"value", value}};
  }
};

absl::StatusOr<Types> InferPad(const Attrs& attrs, TypeSpan in) {
  constexpr int64_t kMaxPadding = int64_t{1} << 48;
  const auto [axis, before, after, value] = attrs.as<PadAttrs>();
  WEFT_RETURN_IF_ERROR(CheckAxis("pad", axis, in));
  WEFT_RETURN_IF_ERROR(CheckNumber("pad", value, in[0].dtype, in));
  if (before < 0 || after < 0 || before > kMaxPadding || after > kMaxPadding) {
    return ShapeError("pad", absl::StrCat("can't pad by ", before, " and ", after), in);
  }
  Shape shape = in[0].shape;
  shape.set_dim(axis, before + shape.dim(axis) + after);
  return Types{{in[0].dtype, shape}};
}

AxisSlice Padded(const Attrs& attrs, const Shape& x, const Shape& y) {
  const PadAttrs pad = attrs.as<PadAttrs>();
  return {.whole = y, .slice = x, .axis = pad.axis, .begin = pad.before};
}

Rect PadAccess(const OpArgs& args, int operand, Rect tile) {
  return operand == 0 ? Padded(args.attrs, args.inputs[0].shape, args.outputs[0].shape).InSlice(tile) : tile;
}

void PadKernel(const KernelArgs& a, Rect tile) {
  const Tensor& y = a.outputs[0];
  Dispatch(y.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T value = ConvertTo<T>(a.attrs.as<PadAttrs>().value);
    ForInnerLoops(y.type.shape, tile, [&](int64_t begin, int64_t n) { std::fill_n(a.output<T>(0) + begin, n, value); });
  });
  CopyToWhole(Padded(a.attrs, a.input_shape(0), y.type.shape), tile, a.inputs[0], y);
}

// dx = dy without the padding.
VarList PadGradient(const GradientArgs& a) {
  const auto [axis, before, after, value] = a.attrs.as<PadAttrs>();
  return {Slice(a.grad(0), axis, before, before + a.input(0).dim(axis))};
}

void PadReference(const ReferenceArgs& a) {
  const PadAttrs pad = a.attrs.as<PadAttrs>();
  const AxisSlice slice = {a.output_types[0].shape, a.input_types[0].shape, pad.axis, pad.before};
  std::fill(a.outputs[0].begin(), a.outputs[0].end(), pad.value);
  slice.ForElements([&](int64_t whole, int64_t at) { a.outputs[0][whole] = a.inputs[0][at]; });
}

constexpr OpExample kPadExamples[] = {
    {.in = "[1]", .record = [](VarSpan in) { return VarList{Pad(in[0], 0, 0, 0)}; }, .out = "[1]"},
    {.in = "[31]", .record = [](VarSpan in) { return VarList{Pad(in[0], 0, 5, 1)}; }, .out = "[37]"},
    {.in = "[5,17]", .record = [](VarSpan in) { return VarList{Pad(in[0], -1, 2, 0)}; }, .out = "[5,19]"},
    {.in = "[2,3,3]", .record = [](VarSpan in) { return VarList{Pad(in[0], 1, 1, 2)}; }, .out = "[2,6,3]"},
    {.in = "[1,2,3,5]", .record = [](VarSpan in) { return VarList{Pad(in[0], 0, 3, 0)}; }, .out = "[4,2,3,5]"},
    {.in = "[0,3]", .record = [](VarSpan in) { return VarList{Pad(in[0], 0, 1, 1)}; }, .out = "[2,3]"},
    {.in = "[5,17]", .record = [](VarSpan in) { return VarList{Pad(in[0], 1, 2, 1, -2.5)}; }, .out = "[5,20]"},
    {.in = "bool[7]", .record = [](VarSpan in) { return VarList{Pad(in[0], 0, 1, 3)}; }, .out = "bool[11]"},
    {.in = "[4,3]",
     .record = [](VarSpan in) { return VarList{Pad(in[0], -3, 0, 1)}; },
     .error = "axis -3 is outside rank 2"},
    {.in = "[4,3]",
     .record = [](VarSpan in) { return VarList{Pad(in[0], 1, -1, 4)}; },
     .error = "can't pad by -1 and 4"},
};

}  // namespace

constexpr OpDef kSlice = {.name = "slice",
                          .infer = InferSlice,
                          .kernels = ForAllDTypes(SliceKernel),
                          .cut = Cut::kBoth,
                          .access = SliceAccess,
                          .gradient = SliceGradient,
                          .reference = SliceReference,
                          .autocast = Autocast::kFollow,
                          .attrs = AttrOpsOf<SliceAttrs>(),
                          .examples = kSliceExamples};
Var Slice(Var x, int axis, int64_t begin, int64_t end) {
  return Record(kSlice, {x}, Attrs::Of(SliceAttrs{FrontAxis(x.shape(), axis), begin, end}));
}

constexpr OpDef kPad = {.name = "pad",
                        .infer = InferPad,
                        .kernels = ForAllDTypes(PadKernel),
                        .cut = Cut::kBoth,
                        .access = PadAccess,
                        .gradient = PadGradient,
                        .reference = PadReference,
                        .autocast = Autocast::kFollow,
                        .attrs = AttrOpsOf<PadAttrs>(),
                        .examples = kPadExamples};
Var Pad(Var x, int axis, int64_t before, int64_t after, double value) {
  return Record(kPad, {x}, Attrs::Of(PadAttrs{FrontAxis(x.shape(), axis), before, after, value}));
}

}  // namespace weft
