// y = x[..., begin:end, ...] along one axis.
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const auto [axis, begin, end] = attrs.as<SliceAttrs>();
  WEFT_RETURN_IF_ERROR(CheckAxis("slice", axis, in));
  Shape shape = in[0].shape;
  if (begin < 0 || begin > end || end > shape.dim(axis)) {
    return ShapeError("slice", absl::StrCat(begin, ":", end, " does not lie in 0:", shape.dim(axis)), in);
  }
  shape.set_dim(axis, end - begin);
  return Types{{in[0].dtype, shape}};
}

AxisSlice SliceOf(const OpArgs& args) {
  const SliceAttrs attrs = args.attrs.as<SliceAttrs>();
  const Shape& whole = args.inputs[0].shape;
  return {whole, args.outputs[0].shape, attrs.axis, attrs.begin};
}

Rect Access(const OpArgs& args, int operand, Rect tile) { return operand == 0 ? SliceOf(args).InWhole(tile) : tile; }

void Kernel(const KernelArgs& a, Rect tile) {
  const AxisSlice slice = SliceOf({a.attrs, {&a.inputs[0].type, 1}, {&a.outputs[0].type, 1}});
  CopyToSlice(slice, slice.InWhole(tile), a.inputs[0], a.outputs[0]);
}

// dx = dy, padded with zeros to the shape of x.
VarList Gradient(const GradientArgs& a) {
  const auto [axis, begin, end] = a.attrs.as<SliceAttrs>();
  return {Pad(a.grad(0), axis, begin, a.input(0).dim(axis) - end)};
}

void Reference(const ReferenceArgs& a) {
  const auto [axis, begin, end] = a.attrs.as<SliceAttrs>();
  const Shape& shape = a.input_types[0].shape;
  const int64_t size = shape.dim(axis);
  const int64_t inner = shape.Product(axis + 1, shape.rank());
  size_t to = 0;
  for (size_t from = 0; from < a.inputs[0].size(); ++from) {
    const int64_t position = from / inner % size;
    if (position >= begin && position < end) a.outputs[0][to++] = a.inputs[0][from];
  }
}

constexpr OpExample kExamples[] = {
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
                          .infer = Infer,
                          .kernels = ForAllDTypes(Kernel),
                          .cut = Cut::kBoth,
                          .access = Access,
                          .gradient = Gradient,
                          .reference = Reference,
                          .autocast = Autocast::kFollow,
                          .attrs = AttrOpsOf<SliceAttrs>(),
                          .examples = kExamples};
Var Slice(Var x, int axis, int64_t begin, int64_t end) {
  return Record(kSlice, {x}, Attrs::Of(SliceAttrs{FrontAxis(x.shape(), axis), begin, end}));
}

}  // namespace weft
