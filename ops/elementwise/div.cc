// ops/elementwise/div.cc: y = a / b; of i32 truncated, and 0 where b is 0.
#include <cmath>

#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// da = dy / b, db = -dy · y / b.
VarList Gradient(const GradientArgs& g) {
  const Var a = g.input(0), b = g.input(1), y = g.output(0), da = g.grad(0) / b;
  return {SumTo(da, a.shape()), SumTo(-(da * y), b.shape())};
}

double Quotient(double a, double b) { return a / b; }
double Truncated(double a, double b) { return b == 0 ? 0 : std::trunc(a / b); }
void Reference(const ReferenceArgs& a) { BinaryReference(a, a.output_types[0].dtype == kI32 ? Truncated : Quotient); }

constexpr OpExample kExamples[] = {
    {.in = "[] []", .low = 0.5, .high = 2, .out = "[]"},
    {.in = "[1] [1,1]", .low = 0.5, .high = 2, .out = "[1,1]"},
    {.in = "[37] [37]", .low = 0.5, .high = 2},
    {.in = "[5,19] [19]", .low = 0.5, .high = 2},
    {.in = "[7] [3,1,1]", .low = 0.5, .high = 2, .out = "[3,1,7]"},
    {.in = "[2,1,3,1] [4,1,17]", .low = 0.5, .high = 2, .out = "[2,4,3,17]"},
    {.in = "[4,33] [4,1]", .low = 0.5, .high = 2},
    {.in = "[] [3,5]", .low = 0.5, .high = 2, .out = "[3,5]"},
    {.in = "[0,3] [3]", .low = 0.5, .high = 2, .out = "[0,3]"},
    {.in = "[2,3] [4]", .error = "don't broadcast"},
    {.in = "[2] i32[2]", .error = "dtypes differ"},
    {.in = "i32[5,19] i32[19]", .below = 9},  // by 0, too
    {.in = "bool[2] bool[2]", .error = "not defined for bool"},
};

}  // namespace

constexpr OpDef kDiv = {.name = "div",
                        .infer = InferBinary<kDiv>,
                        .kernels = kNumberKernels<BinaryFunction::kDiv>,
                        .cut = Cut::kBoth,
                        .access = BroadcastAccess,
                        .in_place = 0,
                        .gradient = Gradient,
                        .reference = Reference,
                        .examples = kExamples};
Var Div(Var a, Var b) { return Record(kDiv, {a, b}); }

}  // namespace weft
