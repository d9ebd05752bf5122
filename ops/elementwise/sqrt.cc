// ops/elementwise/sqrt.cc: y = √x.
#include <cmath>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// dx = dy / (2y).
VarList Gradient(const GradientArgs& a) { return {Scale(a.grad(0), 0.5) / a.output(0)}; }

double Reference(double x) { return std::sqrt(x); }

constexpr OpExample kExamples[] = {
    {.in = "[]", .low = 0.5, .high = 2},
    {.in = "[3,37]", .low = 0.1, .high = 3},
    {.in = "[0,4]"},
    {.in = "[33]", .low = 0, .high = 1e-36, .check_gradient = false},  // a finite difference would leave the domain
    {.in = "i32[2]", .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kSqrt = {.name = "sqrt",
                         .infer = InferSame,
                         .kernels = kUnaryKernels<UnaryFunction::kSqrt>,
                         .cut = Cut::kBoth,
                         .in_place = 0,
                         .gradient = Gradient,
                         .reference = UnaryReference<Reference>,
                         .cost = FlopsPerElement<4>,
                         .examples = kExamples};
Var Sqrt(Var x) { return Record(kSqrt, {x}); }

}  // namespace weft
