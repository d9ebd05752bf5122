// Joins the inputs along one axis.
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct ConcatAttrs {
  int32_t axis = 0;
  auto Fields() const { return std::tuple{AttrField{"axis", axis}}; }
};

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const int axis = attrs.as<ConcatAttrs>().axis;
  if (in.empty()) return ShapeError("concat", "there is nothing to concatenate", in);
  WEFT_RETURN_IF_ERROR(CheckAxis("concat", axis, in));
  TensorType type = in[0];
  for (const TensorType& part : in.subspan(1)) {
    Shape same = part.shape;
    if (same.rank() == type.shape.rank()) same.set_dim(axis, type.shape.dim(axis));
    if (same != type.shape || part.dtype != type.dtype) {
      return ShapeError("concat", absl::StrCat("the inputs differ in more than axis ", axis), in);
    }
    type.shape.set_dim(axis, type.shape.dim(axis) + part.shape.dim(axis));
  }
  return Types{type};
}

// Calls f(i, part) for each input i. `part`: the place of the input in the output.
template <class F>
void ForParts(int axis, const Shape& whole, int count, const auto& shape_of, F f) {
  Part part = {.whole = whole, .axis = axis};
  for (int i = 0; i < count; ++i) {
    part.part = shape_of(i);
    f(i, part);
    part.begin += part.part.dim(axis);
  }
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  Rect rect = tile;
  const auto shape_of = [&](int i) { return args.inputs[i].shape; };
  ForParts(args.attrs.as<ConcatAttrs>().axis, args.outputs[0].shape, args.inputs.size(), shape_of,
           [&](int i, const Part& part) {
             if (i == operand) rect = part.InPart(tile);
           });
  return rect;
}

void Kernel(const KernelArgs& a, Rect tile) {
  const auto shape_of = [&](int i) { return a.input_shape(i); };
  ForParts(a.attrs.as<ConcatAttrs>().axis, a.output_shape(0), a.inputs.size(), shape_of,
           [&](int i, const Part& part) { CopyToWhole(part, tile, a.inputs[i], a.outputs[0]); });
}

// The gradient of each input is its part of dy.
VarList Gradient(const GradientArgs& a) {
  const int axis = a.attrs.as<ConcatAttrs>().axis, count = static_cast<int>(a.inputs.size());
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

void Reference(const ReferenceArgs& a) {
  const int axis = a.attrs.as<ConcatAttrs>().axis;
  const Shape& out = a.output_types[0].shape;
  const int64_t inner = out.Product(axis + 1, out.rank());
  for (size_t to = 0; to < a.outputs[0].size(); ++to) {
    int64_t position = to / inner % out.dim(axis);
    size_t input = 0;
    for (; position >= a.input_types[input].shape.dim(axis); ++input) position -= a.input_types[input].shape.dim(axis);
    const int64_t outer = to / inner / out.dim(axis), size = a.input_types[input].shape.dim(axis);
    a.outputs[0][to] = a.inputs[input][(outer * size + position) * inner + to % inner];
  }
}

constexpr OpExample kExamples[] = {
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

constexpr OpDef kConcat = {.name = "concat",
                           .infer = Infer,
                           .kernels = ForAllDTypes(Kernel),
                           .cut = Cut::kBoth,
                           .access = Access,
                           .gradient = Gradient,
                           .reference = Reference,
                           .autocast = Autocast::kFollow,
                           .attrs = AttrOpsOf<ConcatAttrs>(),
                           .examples = kExamples};
Var Concat(VarSpan parts, int axis) {
  const auto any = std::find_if(parts.begin(), parts.end(), [](Var part) { return static_cast<bool>(part); });
  WEFT_CHECK(any != parts.end());
  return any->tape->Record(kConcat, Attrs::Of(ConcatAttrs{FrontAxis(any->shape(), axis)}), parts)[0];
}

}  // namespace weft
