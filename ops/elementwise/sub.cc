// ops/elementwise/sub.cc: y = a - b.
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// da = dy, db = -dy.
VarList Gradient(const GradientArgs& a) {
  const Var dy = a.grad(0);
  return {SumTo(dy, a.input(0).shape()), SumTo(-dy, a.input(1).shape())};
}

double Reference(double a, double b) { return a - b; }

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
    {.in = "[2,3] [4]", .error = "don't broadcast"},
    {.in = "[2] i32[2]", .error = "dtypes differ"},
    {.in = "i32[5,19] i32[19]", .below = 9},
    {.in = "bool[2] bool[2]", .error = "not defined for bool"},
};

}  // namespace

constexpr OpDef kSub = {.name = "sub",
                        .infer = InferBinary<kSub>,
                        .kernels = kNumberKernels<BinaryFunction::kSub>,
                        .cut = Cut::kBoth,
                        .access = BroadcastAccess,
                        .in_place = 0,
                        .gradient = Gradient,
                        .reference = BinaryReference<Reference>,
                        .examples = kExamples};
Var Sub(Var a, Var b) { return Record(kSub, {a, b}); }

}  // namespace weft
