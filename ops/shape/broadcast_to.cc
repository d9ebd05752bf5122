// Repeats x along new axes, and along axes of size 1.
#include <algorithm>

#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs& attrs, TypeSpan in) {
  const Shape shape = attrs.as<ShapeAttrs>().shape;
  if (!shape.valid() || Broadcast(in[0].shape, shape) != shape) {
    return ShapeError("broadcast_to", absl::StrCat(ToString(in[0].shape), " can't be broadcast to ", ToString(shape)),
                      in);
  }
  return Types{{in[0].dtype, shape}};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  const Shape& out = a.output_shape(0);
  ForInnerLoops(out, a.input_shape(0), out, tile, [&](const InnerLoop& loop) {
    const T* x = a.input<T>(0) + loop.a;
    T* y = a.output<T>(0) + loop.out;
    loop.a_stride == 0 ? std::fill_n(y, loop.n, *x) : std::copy_n(x, loop.n, y);
  });
}

// dx = dy, summed over the axes along which x was repeated.
VarList Gradient(const GradientArgs& a) { return {SumTo(a.grad(0), a.input(0).shape())}; }

double First(double x, double) { return x; }
void Reference(const ReferenceArgs& a) {
  const TensorType types[] = {a.input_types[0], a.output_types[0]};
  const std::vector<double> inputs[] = {a.inputs[0], std::vector<double>(a.outputs[0].size())};
  BinaryReference({a.attrs, types, a.output_types, inputs, a.outputs}, First);
}

constexpr OpExample kExamples[] = {
    {.in = "[]",
     .record =
         [](VarSpan in) {
           return VarList{BroadcastTo(in[0], {3, 5})};
         },
     .out = "[3,5]"},
    {.in = "[1]",
     .record =
         [](VarSpan in) {
           return VarList{BroadcastTo(in[0], {1, 1})};
         },
     .out = "[1,1]"},
    {.in = "[19]",
     .record =
         [](VarSpan in) {
           return VarList{BroadcastTo(in[0], {4, 19})};
         },
     .out = "[4,19]"},
    {.in = "[5,1]",
     .record =
         [](VarSpan in) {
           return VarList{BroadcastTo(in[0], {2, 5, 33})};
         },
     .out = "[2,5,33]"},
    {.in = "[2,1,3]",
     .record =
         [](VarSpan in) {
           return VarList{BroadcastTo(in[0], {2, 7, 3})};
         },
     .out = "[2,7,3]"},
    {.in = "bool[3,1]",
     .record =
         [](VarSpan in) {
           return VarList{BroadcastTo(in[0], {3, 4})};
         },
     .out = "bool[3,4]"},
    {.in = "[1]",
     .record =
         [](VarSpan in) {
           return VarList{BroadcastTo(in[0], {4, 0})};
         },
     .out = "[4,0]"},
    {.in = "[2,3]",
     .record =
         [](VarSpan in) {
           return VarList{BroadcastTo(in[0], {3, 3})};
         },
     .error = "[2,3] can't be broadcast to [3,3]"},
    {.in = "[2,3]",
     .record = [](VarSpan in) { return VarList{BroadcastTo(in[0], {3})}; },
     .error = "can't be broadcast"},
};

}  // namespace

constexpr OpDef kBroadcastTo = {.name = "broadcast_to",
                                .infer = Infer,
                                .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>, Kernel<int32_t>, Kernel<bool>},
                                .cut = Cut::kBoth,
                                .access = BroadcastAccess,
                                .gradient = Gradient,
                                .reference = Reference,
                                .autocast = Autocast::kFollow,
                                .attrs = AttrOpsOf<ShapeAttrs>(),
                                .examples = kExamples};
Var BroadcastTo(Var x, const Shape& shape) {
  return x.shape() == shape ? x : Record(kBroadcastTo, {x}, Attrs::Of(ShapeAttrs{shape}));
}

}  // namespace weft
