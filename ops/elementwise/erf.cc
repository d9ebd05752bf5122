// ops/elementwise/erf.cc: y = erf(x) = 2/√π ∫ exp(-t²) dt from 0 to x.
#include <cmath>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// dx = dy · 2/√π · exp(-x²).
VarList Gradient(const GradientArgs& a) {
  const Var x = a.input(0);
  return {a.grad(0) * Scale(Exp(-(x * x)), 1.12837916709551257390)};
}

double Reference(double x) { return std::erf(x); }

constexpr OpExample kExamples[] = {
    {.in = "[]"},
    {.in = "[3,37]", .low = -3, .high = 3},
    {.in = "[0,4]"},
    {.in = "[257]", .low = -6, .high = 6},
    {.in = "[33]", .low = -1e10, .high = 1e10},
    {.in = "i32[2]", .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kErf = {.name = "erf",
                        .infer = InferSame,
                        .kernels = kUnaryKernels<UnaryFunction::kErf>,
                        .cut = Cut::kBoth,
                        .in_place = 0,
                        .gradient = Gradient,
                        .reference = UnaryReference<Reference>,
                        .cost = FlopsPerElement<30>,
                        .examples = kExamples};
Var Erf(Var x) { return Record(kErf, {x}); }

}  // namespace weft
