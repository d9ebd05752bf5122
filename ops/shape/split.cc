// Splits x into equal parts along one axis, one output for each part.
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// Reports whether an axis of `size` elements falls into `parts` equal parts.
bool FallsInto(int64_t size, int64_t parts) {
  constexpr int64_t kMaxEmptyParts = 1024;  // maximum number of parts of an axis of size 0
  return parts >= 1 && parts <= std::max(size, kMaxEmptyParts) && size % parts == 0;
}

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const auto [axis, parts] = attrs.as<SplitAttrs>();
  WEFT_RETURN_IF_ERROR(CheckAxis("split", axis, in));
  const int64_t size = in[0].shape.dim(axis);
  if (!FallsInto(size, parts)) {
    return ShapeError("split", absl::StrCat("axis ", axis, " does not fall into ", parts, " equal parts"), in);
  }
  Shape shape = in[0].shape;
  shape.set_dim(axis, size / parts);
  return Types(parts, {in[0].dtype, shape});
}

AxisSlice SliceOf(const Attrs& attrs, const Shape& whole, const Shape& slice, int index) {
  const int axis = attrs.as<SplitAttrs>().axis;
  return {whole, slice, axis, index * slice.dim(axis)};
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  if (operand == 0) return tile;
  return SliceOf(args.attrs, args.inputs[0].shape, args.outputs[operand - 1].shape, operand - 1).InSlice(tile);
}

// Tiles cut the input. Each tile is copied to the parts that it overlaps.
void Kernel(const KernelArgs& a, Rect tile) {
  for (int i = 0; i < static_cast<int>(a.outputs.size()); ++i) {
    CopyToSlice(SliceOf(a.attrs, a.input_shape(0), a.output_shape(i), i), tile, a.inputs[0], a.outputs[i]);
  }
}

// dx joins the gradients of the parts; a part without a gradient counts as zeros.
VarList Gradient(const GradientArgs& a) {
  VarList parts;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    parts.push_back(a.grad(i) ? a.grad(i) : FillLike(a.output(i), 0));
  }
  return {Concat(parts, a.attrs.as<SplitAttrs>().axis)};
}

void Reference(const ReferenceArgs& a) {
  const auto [axis, parts] = a.attrs.as<SplitAttrs>();
  const Shape& in = a.input_types[0].shape;
  const int64_t size = in.dim(axis) / parts;
  const int64_t inner = in.Product(axis + 1, in.rank());
  std::vector<size_t> next(parts);
  for (size_t from = 0; from < a.inputs[0].size(); ++from) {
    const int64_t part = from / inner % in.dim(axis) / size;
    a.outputs[part][next[part]++] = a.inputs[0][from];
  }
}

constexpr OpExample kExamples[] = {
    {.in = "[1]", .record = [](VarSpan in) { return Split(in[0], 0, 1); }, .out = "[1]"},
    {.in = "[38]", .record = [](VarSpan in) { return Split(in[0], 0, 2); }, .out = "[19]"},
    {.in = "[5,21]", .record = [](VarSpan in) { return Split(in[0], -1, 3); }, .out = "[5,7]"},
    {.in = "[2,6,5]", .record = [](VarSpan in) { return Split(in[0], 1, 3); }, .out = "[2,2,5]"},
    {.in = "[10,3]", .record = [](VarSpan in) { return Split(in[0], 0, 10); }, .out = "[1,3]"},
    {.in = "[4,0]", .record = [](VarSpan in) { return Split(in[0], 0, 2); }, .out = "[2,0]"},
    {.in = "[4,0]", .record = [](VarSpan in) { return Split(in[0], 1, 3); }, .out = "[4,0]"},
    {.in = "i32[6]", .record = [](VarSpan in) { return Split(in[0], 0, 2); }, .below = 50, .out = "i32[3]"},
    {.in = "[6]", .record = [](VarSpan in) { return Split(in[0], 1, 2); }, .error = "axis 1 is outside rank 1"},
    {.in = "[6]", .record = [](VarSpan in) { return Split(in[0], 0, 4); }, .error = "does not fall into 4 equal parts"},
    {.in = "[6]", .record = [](VarSpan in) { return Split(in[0], 0, 0); }, .error = "0 equal parts"},
};

}  // namespace

constexpr OpDef kSplit = {.name = "split",
                          .infer = Infer,
                          .outputs = 0,
                          .kernels = ForAllDTypes(Kernel),
                          .domain = 0,
                          .cut = Cut::kBoth,
                          .access = Access,
                          .gradient = Gradient,
                          .reference = Reference,
                          .autocast = Autocast::kFollow,
                          .attrs = AttrOpsOf<SplitAttrs>(),
                          .examples = kExamples};
VarList Split(Var x, int axis, int parts) {
  constexpr int kMaxPoisoned = 1 << 16;  // after an error, a caller may still use each of the parts, up to this number
  const int outputs = FallsInto(x.dim(axis), parts) ? parts : std::clamp(parts, 1, kMaxPoisoned);
  return CompositeAll("split", {x}, static_cast<size_t>(outputs), [&] {
    return RecordAll(kSplit, {x}, Attrs::Of(SplitAttrs{FrontAxis(x.shape(), axis), parts}));
  });
}

}  // namespace weft
