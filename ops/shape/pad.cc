// Adds elements of one value before and after x along one axis.
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

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

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
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

AxisSlice SliceOf(const OpArgs& args) {
  const PadAttrs attrs = args.attrs.as<PadAttrs>();
  return {args.outputs[0].shape, args.inputs[0].shape, attrs.axis, attrs.before};
}

Rect Access(const OpArgs& args, int operand, Rect tile) { return operand == 0 ? SliceOf(args).InSlice(tile) : tile; }

void Kernel(const KernelArgs& a, Rect tile) {
  const Tensor& y = a.outputs[0];
  Dispatch(y.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T value = ConvertTo<T>(a.attrs.as<PadAttrs>().value);
    ForInnerLoops(y.type.shape, tile, [&](int64_t begin, int64_t n) { std::fill_n(a.output<T>(0) + begin, n, value); });
  });
  CopyToWhole(SliceOf({a.attrs, {&a.inputs[0].type, 1}, {&y.type, 1}}), tile, a.inputs[0], y);
}

// dx = dy without the padding.
VarList Gradient(const GradientArgs& a) {
  const auto [axis, before, after, value] = a.attrs.as<PadAttrs>();
  return {Slice(a.grad(0), axis, before, before + a.input(0).dim(axis))};
}

void Reference(const ReferenceArgs& a) {
  const auto [axis, before, after, value] = a.attrs.as<PadAttrs>();
  const Shape& shape = a.output_types[0].shape;
  const int64_t size = shape.dim(axis);
  const int64_t inner = shape.Product(axis + 1, shape.rank());
  size_t from = 0;
  for (size_t to = 0; to < a.outputs[0].size(); ++to) {
    const int64_t position = to / inner % size;
    a.outputs[0][to] = position >= before && position < size - after ? a.inputs[0][from++] : value;
  }
}

constexpr OpExample kExamples[] = {
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

constexpr OpDef kPad = {.name = "pad",
                        .infer = Infer,
                        .kernels = ForAllDTypes(Kernel),
                        .cut = Cut::kBoth,
                        .access = Access,
                        .gradient = Gradient,
                        .reference = Reference,
                        .autocast = Autocast::kFollow,
                        .attrs = AttrOpsOf<PadAttrs>(),
                        .examples = kExamples};
Var Pad(Var x, int axis, int64_t before, int64_t after, double value) {
  return Record(kPad, {x}, Attrs::Of(PadAttrs{FrontAxis(x.shape(), axis), before, after, value}));
}

}  // namespace weft
