// ops/elementwise/mul.cc: y = a · b.
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// da = dy · b, db = dy · a.
VarList Gradient(const GradientArgs& g) {
  const Var a = g.input(0), b = g.input(1), dy = g.grad(0);
  return {SumTo(dy * b, a.shape()), SumTo(dy * a, b.shape())};
}

double Reference(double a, double b) { return a * b; }

constexpr OpExample kExamples[] = {
    {.in = "[] []", .out = "[]"},
    {.in = "[1] [1,1]", .out = "[1,1]"},
    {.in = "[37] [37]"},
    {.in = "[5,19] [19]"},
    {.in = "[7] [3,1,1]", .out = "[3,1,7]"},
    {.in = "[2,1,3,1] [4,1,17]", .out = "[2,4,3,17]"},
    {.in = "[4,33] [4,1]"},
    {.in = "[] [3,5]", .out = "[3,5]"},
    {.in = "[0,3] [3]", .out = "[0,3]"},
    {.in = "[6]", .record = [](VarSpan in) { return VarList{in[0] * in[0]}; }},
    {.in = "[2,3] [4]", .error = "don't broadcast"},
    {.in = "[2] i32[2]", .error = "dtypes differ"},
    {.in = "i32[5,19] i32[19]", .below = 9},
    {.in = "bool[2] bool[2]", .error = "not defined for bool"},
};

}  // namespace

constexpr OpDef kMul = {.name = "mul",
                        .infer = InferBinary<kMul>,
                        .kernels = kNumberKernels<BinaryFunction::kMul>,
                        .cut = Cut::kBoth,
                        .access = BroadcastAccess,
                        .in_place = 0,
                        .gradient = Gradient,
                        .reference = BinaryReference<Reference>,
                        .autocast = Autocast::kFollow,
                        .examples = kExamples};
Var Mul(Var a, Var b) { return Record(kMul, {a, b}); }

}  // namespace weft
