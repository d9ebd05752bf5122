// slice: y = x[..., begin:end, ...] along one axis.
// pad: y = x with elements of one value before and after it along one axis.
// split: equal parts of x along one axis, one output for each part.
// concat: the inputs, joined along one axis.
//
// slice and pad are each other's gradient, and the gradient of split is concat. The gradient of concat is split or, for
// one input or for different shapes, slices.
#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/axis.h"
#include "weft/ops/kernels/rows/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> InferSlice(const Attrs& attrs, TypeSpan in) {
  const auto [axis, begin, end] = attrs.as<SliceAttrs>();
  WEFT_RETURN_IF_ERROR(CheckAxis("slice", axis, in));
  const Shape& shape = in[0].shape;
  if (begin < 0 || begin > end || end > shape.dim(axis)) {
    return ShapeError("slice", absl::StrCat(begin, ":", end, " does not lie in 0:", shape.dim(axis)), in);
  }
  return Types{{in[0].dtype, WithDim(shape, axis, end - begin)}};
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
    {.in = "[1]", .record = RecordCall<Slice, 0, 0, 1>, .out = "[1]"},
    {.in = "[37]", .record = RecordCall<Slice, 0, 5, 36>, .out = "[31]"},
    {.in = "[5,19]", .record = RecordCall<Slice, -1, 2, 19>, .out = "[5,17]"},
    {.in = "[2,5,3]", .record = RecordCall<Slice, 1, 1, 4>, .out = "[2,3,3]"},
    {.in = "[4,2,3,5]", .record = RecordCall<Slice, 0, 3, 4>, .out = "[1,2,3,5]"},
    {.in = "[4,3]", .record = RecordCall<Slice, 0, 2, 2>, .out = "[0,3]"},
    {.in = "i32[7]", .record = RecordCall<Slice, 0, 1, 3>, .below = 50, .out = "i32[2]"},
    {.in = "[4,3]", .record = RecordCall<Slice, 2, 0, 1>, .error = "axis 2 is outside rank 2"},
    {.in = "[4,3]", .record = RecordCall<Slice, 1, 1, 4>, .error = "1:4 does not lie in 0:3"},
    {.in = "[4,3]", .record = RecordCall<Slice, 1, 2, 1>, .error = "2:1"},
};

// Reports whether an axis of `size` elements falls into `parts` equal parts.
bool FallsInto(int64_t size, int64_t parts) {
  constexpr int64_t kMaxEmptyParts = 1024;  // maximum number of parts of an axis of size 0
  return parts >= 1 && parts <= std::max(size, kMaxEmptyParts) && size % parts == 0;
}

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
  return Types{{in[0].dtype, WithDim(in[0].shape, axis, before + in[0].shape.dim(axis) + after)}};
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
    {.in = "[1]", .record = RecordCall<Pad, 0, 0, 0, 0>, .out = "[1]"},
    {.in = "[31]", .record = RecordCall<Pad, 0, 5, 1, 0>, .out = "[37]"},
    {.in = "[5,17]", .record = RecordCall<Pad, -1, 2, 0, 0>, .out = "[5,19]"},
    {.in = "[2,3,3]", .record = RecordCall<Pad, 1, 1, 2, 0>, .out = "[2,6,3]"},
    {.in = "[1,2,3,5]", .record = RecordCall<Pad, 0, 3, 0, 0>, .out = "[4,2,3,5]"},
    {.in = "[0,3]", .record = RecordCall<Pad, 0, 1, 1, 0>, .out = "[2,3]"},
    {.in = "[5,17]", .record = [](VarSpan in) { return VarList{Pad(in[0], 1, 2, 1, -2.5)}; }, .out = "[5,20]"},
    {.in = "bool[7]", .record = RecordCall<Pad, 0, 1, 3, 0>, .out = "bool[11]"},
    {.in = "[4,3]", .record = RecordCall<Pad, -3, 0, 1, 0>, .error = "axis -3 is outside rank 2"},
    {.in = "[4,3]", .record = RecordCall<Pad, 1, -1, 4, 0>, .error = "can't pad by -1 and 4"},
};

absl::StatusOr<Types> InferSplit(const Attrs& attrs, TypeSpan in) {
  const auto [axis, parts] = attrs.as<SplitAttrs>();
  WEFT_RETURN_IF_ERROR(CheckAxis("split", axis, in));
  const int64_t size = in[0].shape.dim(axis);
  if (!FallsInto(size, parts)) {
    return ShapeError("split", absl::StrCat("axis ", axis, " does not fall into ", parts, " equal parts"), in);
  }
  return Types(parts, {in[0].dtype, WithDim(in[0].shape, axis, size / parts)});
}

AxisSlice SliceOf(const Attrs& attrs, const Shape& whole, const Shape& slice, int index) {
  const int axis = attrs.as<SplitAttrs>().axis;
  return {whole, slice, axis, index * slice.dim(axis)};
}

Rect SplitAccess(const OpArgs& args, int operand, Rect tile) {
  if (operand == 0) return tile;
  return SliceOf(args.attrs, args.inputs[0].shape, args.outputs[operand - 1].shape, operand - 1).InSlice(tile);
}

// Tiles cut the input. Each tile is copied to the parts that it overlaps.
void SplitKernel(const KernelArgs& a, Rect tile) {
  for (int i = 0; i < static_cast<int>(a.outputs.size()); ++i) {
    CopyToSlice(SliceOf(a.attrs, a.input_shape(0), a.output_shape(i), i), tile, a.inputs[0], a.outputs[i]);
  }
}

// dx joins the gradients of the parts; a part without a gradient counts as zeros.
VarList SplitGradient(const GradientArgs& a) {
  VarList parts;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    parts.push_back(a.grad(i) ? a.grad(i) : FillLike(a.output(i), 0));
  }
  return {Concat(parts, a.attrs.as<SplitAttrs>().axis)};
}

void SplitReference(const ReferenceArgs& a) {
  const auto [axis, parts] = a.attrs.as<SplitAttrs>();
  const Shape &whole = a.input_types[0].shape, &shape = a.output_types[0].shape;
  for (int i = 0; i < parts; ++i) {
    const AxisSlice slice = {whole, shape, axis, whole.dim(axis) / parts * i};
    slice.ForElements([&](int64_t from, int64_t at) { a.outputs[i][at] = a.inputs[0][from]; });
  }
}

constexpr OpExample kSplitExamples[] = {
    {.in = "[1]", .record = RecordCall<Split, 0, 1>, .out = "[1]"},
    {.in = "[38]", .record = RecordCall<Split, 0, 2>, .out = "[19]"},
    {.in = "[5,21]", .record = RecordCall<Split, -1, 3>, .out = "[5,7]"},
    {.in = "[2,6,5]", .record = RecordCall<Split, 1, 3>, .out = "[2,2,5]"},
    {.in = "[10,3]", .record = RecordCall<Split, 0, 10>, .out = "[1,3]"},
    {.in = "[4,0]", .record = RecordCall<Split, 0, 2>, .out = "[2,0]"},
    {.in = "[4,0]", .record = RecordCall<Split, 1, 3>, .out = "[4,0]"},
    {.in = "i32[6]", .record = RecordCall<Split, 0, 2>, .below = 50, .out = "i32[3]"},
    {.in = "[6]", .record = RecordCall<Split, 1, 2>, .error = "axis 1 is outside rank 1"},
    {.in = "[6]", .record = RecordCall<Split, 0, 4>, .error = "does not fall into 4 equal parts"},
    {.in = "[6]", .record = RecordCall<Split, 0, 0>, .error = "0 equal parts"},
};

absl::StatusOr<Types> InferConcat(const Attrs& attrs, TypeSpan in) {
  const int axis = attrs.as<AxisAttrs>().axis;
  if (in.empty()) return ShapeError("concat", "there is nothing to concatenate", in);
  WEFT_RETURN_IF_ERROR(CheckAxis("concat", axis, in));
  TensorType type = in[0];
  for (const TensorType& slice : in.subspan(1)) {
    Shape same = slice.shape;
    if (same.rank() == type.shape.rank()) same.set_dim(axis, type.shape.dim(axis));
    if (same != type.shape || slice.dtype != type.dtype) {
      return ShapeError("concat", absl::StrCat("the inputs differ in more than axis ", axis), in);
    }
    type.shape.set_dim(axis, type.shape.dim(axis) + slice.shape.dim(axis));
  }
  return Types{type};
}

// Calls f(i, slice) for each input i. `slice` tells where input i lies in the output, whose shape is `whole`.
template <class F>
void ForParts(int axis, const Shape& whole, int count, const auto& shape_of, F f) {
  AxisSlice slice = {.whole = whole, .axis = axis};
  for (int i = 0; i < count; ++i) {
    slice.slice = shape_of(i);
    f(i, slice);
    slice.begin += slice.slice.dim(axis);
  }
}

Rect ConcatAccess(const OpArgs& args, int operand, Rect tile) {
  Rect rect = tile;
  const auto shape_of = [&](int i) { return args.inputs[i].shape; };
  ForParts(args.attrs.as<AxisAttrs>().axis, args.outputs[0].shape, args.inputs.size(), shape_of,
           [&](int i, const AxisSlice& slice) {
             if (i == operand) rect = slice.InSlice(tile);
           });
  return rect;
}

void ConcatKernel(const KernelArgs& a, Rect tile) {
  const auto shape_of = [&](int i) { return a.input_shape(i); };
  ForParts(a.attrs.as<AxisAttrs>().axis, a.output_shape(0), a.inputs.size(), shape_of,
           [&](int i, const AxisSlice& slice) { CopyToWhole(slice, tile, a.inputs[i], a.outputs[0]); });
}

// The gradient by each input is its slice of dy.
VarList ConcatGradient(const GradientArgs& a) {
  const int axis = a.attrs.as<AxisAttrs>().axis, count = static_cast<int>(a.inputs.size());
  const auto as_first = [&](Var x) { return x.shape() == a.input(0).shape(); };
  if (count > 1 && std::all_of(a.inputs.begin(), a.inputs.end(), as_first)) return Split(a.grad(0), axis, count);
  VarList grads;
  int64_t begin = 0;
  for (Var x : a.inputs) {
    grads.push_back(Slice(a.grad(0), axis, begin, begin + x.dim(axis)));
    begin += x.dim(axis);
  }
  return grads;
}

void ConcatReference(const ReferenceArgs& a) {
  AxisSlice slice = {.whole = a.output_types[0].shape, .axis = a.attrs.as<AxisAttrs>().axis};
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    slice.slice = a.input_types[i].shape;
    slice.ForElements([&](int64_t to, int64_t at) { a.outputs[0][to] = a.inputs[i][at]; });
    slice.begin += slice.slice.dim(slice.axis);
  }
}

constexpr OpExample kConcatExamples[] = {
    {.in = "[1] [1]", .record = [](VarSpan in) { return VarList{Concat(in, 0)}; }, .out = "[2]"},
    {.in = "[37]", .record = [](VarSpan in) { return VarList{Concat(in, 0)}; }, .out = "[37]"},
    {.in = "[5,3] [5,17] [5,1]", .record = [](VarSpan in) { return VarList{Concat(in, -1)}; }, .out = "[5,21]"},
    {.in = "[2,3,5] [2,1,5]", .record = [](VarSpan in) { return VarList{Concat(in, 1)}; }, .out = "[2,4,5]"},
    {.in = "[2,3,5] [2,3,5]", .record = [](VarSpan in) { return VarList{Concat(in, 0)}; }, .out = "[4,3,5]"},
    {.in = "[0,3] [2,3]", .record = [](VarSpan in) { return VarList{Concat(in, 0)}; }, .out = "[2,3]"},
    {.in = "i32[3] i32[2]", .record = [](VarSpan in) { return VarList{Concat(in, 0)}; }, .below = 50, .out = "i32[5]"},
    {.in = "[2,3] [3,3]", .record = [](VarSpan in) { return VarList{Concat(in, 1)}; }, .error = "more than axis 1"},
    {.in = "[2] i32[2]", .record = [](VarSpan in) { return VarList{Concat(in, 0)}; }, .error = "more than axis 0"},
    {.in = "[2] [2,2]", .record = [](VarSpan in) { return VarList{Concat(in, 0)}; }, .error = "more than axis 0"},
    {.in = "[2] [2]", .record = [](VarSpan in) { return VarList{Concat(in, 1)}; }, .error = "axis 1 is outside rank 1"},
    {.in = "[2]",
     .record =
         [](VarSpan in) {
           return VarList{Concat({Var(), in[0]}, 0)};
         },
     .error = "input 0 is an empty Var"},
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

constexpr OpDef kSplit = {.name = "split",
                          .infer = InferSplit,
                          .outputs = 0,
                          .kernels = ForAllDTypes(SplitKernel),
                          .domain = 0,
                          .cut = Cut::kBoth,
                          .access = SplitAccess,
                          .gradient = SplitGradient,
                          .reference = SplitReference,
                          .autocast = Autocast::kFollow,
                          .attrs = AttrOpsOf<SplitAttrs>(),
                          .examples = kSplitExamples};
VarList Split(Var x, int axis, int parts) {
  constexpr int kMaxPoisoned = 1 << 16;  // after an error, a caller may still use each of the parts, up to this number
  const int outputs = FallsInto(x.dim(axis), parts) ? parts : std::clamp(parts, 1, kMaxPoisoned);
  return CompositeAll("split", {x}, static_cast<size_t>(outputs), [&] {
    return RecordAll(kSplit, {x}, Attrs::Of(SplitAttrs{FrontAxis(x.shape(), axis), parts}));
  });
}

constexpr OpDef kConcat = {.name = "concat",
                           .infer = InferConcat,
                           .kernels = ForAllDTypes(ConcatKernel),
                           .cut = Cut::kBoth,
                           .access = ConcatAccess,
                           .gradient = ConcatGradient,
                           .reference = ConcatReference,
                           .autocast = Autocast::kFollow,
                           .attrs = AttrOpsOf<AxisAttrs>(),
                           .examples = kConcatExamples};
Var Concat(VarSpan parts, int axis) {
  const auto any = std::find_if(parts.begin(), parts.end(), [](Var slice) { return static_cast<bool>(slice); });
  WEFT_CHECK(any != parts.end());
  return any->tape->Record(kConcat, Attrs::Of(AxisAttrs{FrontAxis(any->shape(), axis)}), parts)[0];
}

}  // namespace weft
