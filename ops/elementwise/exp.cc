// ops/elementwise/exp.cc: y = exp(x).
#include <cmath>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// dx = dy · y.
VarList Gradient(const GradientArgs& a) { return {a.grad(0) * a.output(0)}; }

double Reference(double x) { return std::exp(x); }

constexpr OpExample kExamples[] = {
    {.in = "[]"},
    {.in = "[3,37]", .low = -3, .high = 3},
    {.in = "[0,4]"},
    {.in = "[301]", .low = -110, .high = 88, .check_gradient = false},  // differences round too coarsely; to subnormals
    {.in = "[33]", .low = -1e30, .high = -1e3, .check_gradient = false},  // beside such an x a step is lost
    {.in = "i32[2]", .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kExp = {.name = "exp",
                        .infer = InferSame,
                        .kernels = kUnaryKernels<UnaryFunction::kExp>,
                        .cut = Cut::kBoth,
                        .in_place = 0,
                        .gradient = Gradient,
                        .reference = UnaryReference<Reference>,
                        .cost = FlopsPerElement<8>,
                        .examples = kExamples};
Var Exp(Var x) { return Record(kExp, {x}); }

}  // namespace weft
