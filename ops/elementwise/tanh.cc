// ops/elementwise/tanh.cc: y = tanh(x).
#include <cmath>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// dx = dy · (1 - y²).
VarList Gradient(const GradientArgs& a) {
  const Var y = a.output(0);
  return {a.grad(0) * (1 - y * y)};
}

double Reference(double x) { return std::tanh(x); }

constexpr OpExample kExamples[] = {
    {.in = "[]"},
    {.in = "[3,37]", .low = -3, .high = 3},
    {.in = "[0,4]"},
    {.in = "[65]", .low = -100, .high = 100},
    {.in = "i32[2]", .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kTanh = {.name = "tanh",
                         .infer = InferSame,
                         .kernels = kUnaryKernels<UnaryFunction::kTanh>,
                         .cut = Cut::kBoth,
                         .in_place = 0,
                         .gradient = Gradient,
                         .reference = UnaryReference<Reference>,
                         .cost = FlopsPerElement<12>,
                         .examples = kExamples};
Var Tanh(Var x) { return Record(kTanh, {x}); }

}  // namespace weft
