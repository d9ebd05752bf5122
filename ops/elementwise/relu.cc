// ops/elementwise/relu.cc: y = max(x, 0); NaN stays NaN.
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// dx = dy where y is not 0.
VarList Gradient(const GradientArgs& a) {
  const Var y = a.output(0);
  return {MaskFill(a.grad(0), Equal(y, Number(y, 0)), 0)};
}

double Reference(double x) { return x < 0 ? 0 : x; }

constexpr OpExample kExamples[] = {
    {.in = "[]", .low = 0.1},
    {.in = "[3,37]", .low = 0.1},  // one side of the kink, and the other
    {.in = "[3,37]", .low = -1, .high = -0.1},
    {.in = "[5,17]", .check_gradient = false},  // a finite difference may straddle the kink
    {.in = "[0,4]"},
    {.in = "i32[2]", .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kRelu = {.name = "relu",
                         .infer = InferSame,
                         .kernels = kUnaryKernels<UnaryFunction::kRelu>,
                         .cut = Cut::kBoth,
                         .in_place = 0,
                         .gradient = Gradient,
                         .reference = UnaryReference<Reference>,
                         .autocast = Autocast::kFollow,
                         .cost = FlopsPerElement<1>,
                         .examples = kExamples};
Var Relu(Var x) { return Record(kRelu, {x}); }

}  // namespace weft
