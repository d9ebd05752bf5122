// ops/elementwise/log.cc: y = log(x).
#include <cmath>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// dx = dy / x.
VarList Gradient(const GradientArgs& a) { return {a.grad(0) / a.input(0)}; }

double Reference(double x) { return std::log(x); }

constexpr OpExample kExamples[] = {
    {.in = "[]", .low = 0.5, .high = 2},
    {.in = "[3,37]", .low = 0.1, .high = 3},
    {.in = "[0,4]"},
    {.in = "[33]", .low = 1, .high = 1e30, .check_gradient = false},   // the gradient, 1e-30, is below the tolerance
    {.in = "[33]", .low = 0, .high = 1e-36, .check_gradient = false},  // a finite difference would leave the domain
    {.in = "i32[2]", .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kLog = {.name = "log",
                        .infer = InferSame,
                        .kernels = kUnaryKernels<UnaryFunction::kLog>,
                        .cut = Cut::kBoth,
                        .in_place = 0,
                        .gradient = Gradient,
                        .reference = UnaryReference<Reference>,
                        .cost = FlopsPerElement<8>,
                        .examples = kExamples};
Var Log(Var x) { return Record(kLog, {x}); }

}  // namespace weft
