// pad: y = x with elements of one value before and after it along one axis. Its gradient is a slice.
#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
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
