// ops/elementwise/softplus.cc: y = log(1 + exp(x)), without overflow.
#include <algorithm>
#include <cmath>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// dx = dy · sigmoid(x).
VarList Gradient(const GradientArgs& a) { return {a.grad(0) * Sigmoid(a.input(0))}; }

double Reference(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

constexpr OpExample kExamples[] = {
    {.in = "[]"},
    {.in = "[3,37]", .low = -3, .high = 3},
    {.in = "[0,4]"},
    {.in = "[301]", .low = -100, .high = 100, .check_gradient = false},   // differences round too coarsely
    {.in = "[33]", .low = -1e30, .high = 1e30, .check_gradient = false},  // beside such an x a step is lost
    {.in = "i32[2]", .error = "not defined for i32"},
};

}  // namespace

constexpr OpDef kSoftplus = {.name = "softplus",
                             .infer = InferSame,
                             .kernels = kUnaryKernels<UnaryFunction::kSoftplus>,
                             .cut = Cut::kBoth,
                             .in_place = 0,
                             .gradient = Gradient,
                             .reference = UnaryReference<Reference>,
                             .cost = FlopsPerElement<24>,
                             .examples = kExamples};
Var Softplus(Var x) { return Record(kSoftplus, {x}); }

}  // namespace weft
