// ops/elementwise/sigmoid.cc: y = 1 / (1 + exp(-x)).
#include <cmath>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// dx = dy · y · (1 - y).
VarList Gradient(const GradientArgs& a) {
  const Var y = a.output(0);
  return {a.grad(0) * y * (1 - y)};
}

double Reference(double x) { return 1 / (1 + std::exp(-x)); }

constexpr OpExample kExamples[] = {
    {.in = "[]"},    {.in = "[3,37]", .low = -8, .high = 8},           {.in = "[65]", .low = -200, .high = 200},
    {.in = "[0,4]"}, {.in = "i32[2]", .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kSigmoid = {.name = "sigmoid",
                            .infer = InferSame,
                            .kernels = kUnaryKernels<UnaryFunction::kSigmoid>,
                            .cut = Cut::kBoth,
                            .in_place = 0,
                            .gradient = Gradient,
                            .reference = UnaryReference<Reference>,
                            .autocast = Autocast::kFollow,
                            .cost = FlopsPerElement<12>,
                            .examples = kExamples};
Var Sigmoid(Var x) { return Record(kSigmoid, {x}); }

}  // namespace weft
