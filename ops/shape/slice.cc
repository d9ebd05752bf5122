// slice: y = x[..., begin:end, ...] along one axis. Its gradient is a Pad, which joins x and elements of one value.
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

Var Pad(Var x, int axis, int64_t before, int64_t after, double value) {
  return Composite("pad", {x}, [&]() -> absl::StatusOr<Var> {
    constexpr int64_t kMaxPadding = int64_t{1} << 48;
    const TensorType type = x.type();
    const int front = FrontAxis(type.shape, axis);
    WEFT_RETURN_IF_ERROR(CheckAxis("pad", front, {type}));
    WEFT_RETURN_IF_ERROR(CheckNumber("pad", value, type.dtype, {type}));
    if (before < 0 || after < 0 || before > kMaxPadding || after > kMaxPadding) {
      return ShapeError("pad", absl::StrCat("can't pad by ", before, " and ", after), {type});
    }
    const auto filled = [&](int64_t n) {
      TensorType padding = type;
      padding.shape.set_dim(front, n);
      return Fill(x.tape, padding, value);
    };
    VarList parts = {x};
    if (before > 0) parts.insert(parts.begin(), filled(before));
    if (after > 0) parts.push_back(filled(after));
    return parts.size() == 1 ? x : Concat(parts, front);
  });
}

}  // namespace weft
