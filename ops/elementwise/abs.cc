// ops/elementwise/abs.cc: y = |x|.
#include <cmath>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// dx = dy · sign(x), 0 at 0.
VarList Gradient(const GradientArgs& a) { return {a.grad(0) * Sign(a.input(0))}; }

double Reference(double x) { return std::abs(x); }

constexpr OpExample kExamples[] = {
    {.in = "[]"},
    {.in = "[3,37]"},
    {.in = "[0,4]"},
    {.in = "[33]", .low = -1e30, .high = 1e30, .check_gradient = false},  // beside such an x a step is lost
    {.in = "bool[2]", .error = "not defined for bool"},
};

}  // namespace

constexpr OpDef kAbs = {.name = "abs",
                        .infer = InferSame,
                        .kernels = kUnaryKernels<UnaryFunction::kAbs>,
                        .cut = Cut::kBoth,
                        .in_place = 0,
                        .gradient = Gradient,
                        .reference = UnaryReference<Reference>,
                        .autocast = Autocast::kFollow,
                        .examples = kExamples};
Var Abs(Var x) { return x.dtype() == kI32 ? Maximum(x, -x) : Record(kAbs, {x}); }

}  // namespace weft
