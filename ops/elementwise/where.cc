// The op where computes y = a where mask is true, else b. Its inputs are a, b and mask, in this order, of one shape. a
// and b have the same dtype, which may be any. The function Where(mask, a, b) first broadcasts its arguments.
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/kernels/select.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[2].dtype != kBool) return ShapeError("where", "the mask must be bool", in);
  if (in[1].dtype != in[0].dtype) return ShapeError("where", "dtypes differ", in);
  if (in[1].shape != in[0].shape || in[2].shape != in[0].shape) return ShapeError("where", "shapes differ", in);
  return Types{in[0]};
}

template <class T>
void Kernel(const KernelArgs& a, Rect tile) {
  ForInnerLoops(a.output_shape(0), tile, [&](int64_t begin, int64_t n) {
    Selects<T>().select(a.input<bool>(2) + begin, a.input<T>(0) + begin, 1, a.input<T>(1) + begin, 1,
                        a.output<T>(0) + begin, n);
  });
}

// da = dy where the mask is true, else 0; db = dy where the mask is false, else 0.
VarList Gradient(const GradientArgs& a) {
  const Var dy = a.grad(0), mask = a.input(2);
  return {MaskFill(dy, Not(mask), 0), MaskFill(dy, mask, 0), Var{}};
}

void Reference(const ReferenceArgs& a) {
  for (size_t e = 0; e < a.outputs[0].size(); ++e) a.outputs[0][e] = a.inputs[a.inputs[2][e] != 0 ? 0 : 1][e];
}

VarList Example(VarSpan in) { return {Where(in[2], in[0], in[1])}; }

constexpr OpExample kExamples[] = {
    {.in = "[] [] bool[]", .record = Example, .out = "[]"},
    {.in = "[3,37] [3,37] bool[3,37]", .record = Example},
    {.in = "[5,1] [19] bool[5,19]", .record = Example, .out = "[5,19]"},
    {.in = "[7] [] bool[3,1,1]", .record = Example, .out = "[3,1,7]"},
    {.in = "i32[6] i32[6] bool[6]", .record = Example, .below = 9},
    {.in = "bool[6] bool[6] bool[6]", .record = Example},
    {.in = "[0,3] [3] bool[3]", .record = Example, .out = "[0,3]"},
    {.in = "[3] [4] bool[]", .record = Example, .error = "don't broadcast"},
    {.in = "[3] i32[3] bool[3]", .record = Example, .error = "dtypes differ"},
    {.in = "[3] [3] i32[3]", .record = Example, .error = "must be bool"},
    {.in = "[3] [] bool[3]", .error = "shapes differ"},
};

}  // namespace

constexpr OpDef kWhere = {.name = "where",
                          .infer = Infer,
                          .kernels = {Kernel<float>, Kernel<double>, Kernel<BF16>, Kernel<int32_t>, Kernel<bool>},
                          .cut = Cut::kBoth,
                          .in_place = 0,
                          .gradient = Gradient,
                          .reference = Reference,
                          .autocast = Autocast::kFollow,
                          .examples = kExamples};

Var Where(Var mask, Var a, Var b) {
  return Composite("where", {mask, a, b}, [&]() -> absl::StatusOr<Var> {
    const std::optional<Shape> values = Broadcast(a.shape(), b.shape());
    const std::optional<Shape> shape = values ? Broadcast(*values, mask.shape()) : std::nullopt;
    if (!shape) return ShapeError("where", "the inputs don't broadcast", {mask.type(), a.type(), b.type()});
    return Record(kWhere, {BroadcastTo(a, *shape), BroadcastTo(b, *shape), BroadcastTo(mask, *shape)});
  });
}

}  // namespace weft
