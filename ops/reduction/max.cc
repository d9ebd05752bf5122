// y[o, 0, i] = max_k x[o, k, i] along one axis. If any x[o, k, i] is NaN, the result is NaN.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/kernels/rows.h"
#include "weft/ops/ops.h"
#include "weft/ops/reduction/blocks.h"

namespace weft {
namespace {

struct MaxAttrs {
  int axis = 0;  // from the front
  auto Fields() const { return std::tuple{AttrField{"axis", axis}}; }
};

// Returns the whole axis as one block.
BlockAttrs WholeAxis(const Attrs& attrs, const Shape& shape) {
  const int axis = attrs.as<MaxAttrs>().axis;
  return {.axis = axis, .block = shape.dim(axis)};
}

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const int axis = attrs.as<MaxAttrs>().axis;
  WEFT_RETURN_IF_ERROR(CheckAxis("max", axis, in));
  if (in[0].shape.dim(axis) == 0) return ShapeError("max", absl::StrCat("axis ", axis, " has no elements"), in);
  TensorType out = in[0];
  out.shape.set_dim(axis, 1);
  return Types{out};
}

Rect Access(const OpArgs& args, int operand, Rect tile) {
  const Shape& shape = args.inputs[0].shape;
  return operand == 0 ? BlockAccess(WholeAxis(args.attrs, shape), shape, tile) : tile;
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const RowKernels<T>& rows = Rows<T>();
  const T* const x = a.input<T>(0);
  T* const y = a.output<T>(0);
  ForEachBlock(
      WholeAxis(a.attrs, a.input_shape(0)), a.input_shape(0), tile,
      [&](int64_t from, int64_t count, int64_t to) { y[to] = rows.max(x + from, count); },
      [&](int64_t from, int64_t stride, int64_t count, int64_t to, int64_t n) {
        rows.max_rows(x + from, stride, count, y + to, n);
      });
}

// dx = [x = y] · dy / (number of elements equal to y), where NaN equals NaN.
VarList Gradient(const GradientArgs& a) {
  const int axis = a.attrs.as<MaxAttrs>().axis;
  const Var x = a.input(0);
  const Var equal = Cast(MaskFill(Equal(x, a.output(0)), IsNan(x), true), x.dtype());
  return {equal * (a.grad(0) / Sum(equal, axis, true))};
}

void Reference(const ReferenceArgs& a) {
  const int axis = a.attrs.as<MaxAttrs>().axis;
  const Shape& shape = a.input_types[0].shape;
  const int64_t n = shape.dim(axis), inner = shape.Product(axis + 1, shape.rank());
  for (int64_t e = 0; e < shape.elements(); ++e) {
    double& y = a.outputs[0][e / inner / n * inner + e % inner];
    const double x = a.inputs[0][e];
    if (e / inner % n == 0 || x > y || std::isnan(x)) y = x;
  }
}

Cost CostOf(const OpArgs& args) {
  return {.flops = static_cast<double>(args.inputs[0].shape.elements()),
          .bytes = static_cast<double>(args.inputs[0].bytes() + args.outputs[0].bytes())};
}

template <int axis, bool keep>
VarList Example(VarSpan in) {
  return {Max(in[0], axis, keep)};
}

constexpr OpExample kExamples[] = {
    {.in = "[1]", .record = Example<0, true>, .out = "[1]"},
    {.in = "[3,257]", .record = Example<-1, true>, .out = "[3,1]"},
    {.in = "[257,3]", .record = Example<0, false>, .out = "[3]"},
    {.in = "[2,7,3,5]", .record = Example<1, true>, .low = -90, .high = -80, .out = "[2,1,3,5]"},
    {.in = "[7,3]",
     .record =
         [](VarSpan in) {
           return VarList{Max(Concat({in[0], in[0]}, 0), 0)};
         }},  // ties
    {.in = "[0,4]", .record = Example<1, true>, .out = "[0,1]"},
    {.in = "[4,0]", .record = Example<1, true>, .error = "axis 1 has no elements"},
    {.in = "[3]", .record = Example<1, true>, .error = "axis 1 is outside rank 1"},
};

}  // namespace

constexpr OpDef kMax = {.name = "max",
                        .infer = Infer,
                        .kernels = {Kernel<float>, Kernel<double>},
                        .cut = Cut::kBoth,
                        .access = Access,
                        .gradient = Gradient,
                        .reference = Reference,
                        .cost = CostOf,
                        .attrs = AttrOpsOf<MaxAttrs>(),
                        .examples = kExamples};

Var Max(Var x, int axis, bool keep) {
  const int from_front = FrontAxis(x.shape(), axis);
  const Var y = Record(kMax, {x}, Attrs::Of(MaxAttrs{.axis = from_front}));
  return keep || !x.tape->status().ok() ? y : Reshape(y, WithoutAxis(x.shape(), from_front));
}

}  // namespace weft
