// ops/elementwise/minimum.cc: y = min(a, b) and y = max(a, b); a NaN wins, and at a tie a.
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

// dy goes to b where b is NaN or y, but a isn't, else to a.
VarList Gradient(const GradientArgs& g) {
  const Var a = g.input(0), b = g.input(1), dy = g.grad(0);
  const Var b_beyond = MaskFill(Equal(g.output(0), b), Equal(g.output(0), a), false);
  const Var b_won = MaskFill(b_beyond, IsNan(b), true);
  return {SumTo(MaskFill(dy, b_won, 0), a.shape()), SumTo(MaskFill(dy, Not(b_won), 0), b.shape())};
}

double Less(double a, double b) { return b < a || b != b ? b : a; }
double Greater(double a, double b) { return b > a || b != b ? b : a; }

template <Var (*op)(Var, Var)>
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
    {.in = "[9]", .record = [](VarSpan in) { return VarList{op(in[0], in[0])}; }},  // ties
    {.in = "[2,3] [4]", .error = "don't broadcast"},
    {.in = "[2] i32[2]", .error = "dtypes differ"},
    {.in = "i32[5,19] i32[19]", .below = 9},
    {.in = "bool[2] bool[2]", .error = "not defined for bool"},
};

}  // namespace

constexpr OpDef kMinimum = {.name = "minimum",
                            .infer = InferBinary<kMinimum>,
                            .kernels = kNumberKernels<BinaryFunction::kMinimum>,
                            .cut = Cut::kBoth,
                            .access = BroadcastAccess,
                            .in_place = 0,
                            .gradient = Gradient,
                            .reference = BinaryReference<Less>,
                            .examples = kExamples<Minimum>};
Var Minimum(Var a, Var b) { return Record(kMinimum, {a, b}); }

constexpr OpDef kMaximum = {.name = "maximum",
                            .infer = InferBinary<kMaximum>,
                            .kernels = kNumberKernels<BinaryFunction::kMaximum>,
                            .cut = Cut::kBoth,
                            .access = BroadcastAccess,
                            .in_place = 0,
                            .gradient = Gradient,
                            .reference = BinaryReference<Greater>,
                            .examples = kExamples<Maximum>};
Var Maximum(Var a, Var b) { return Record(kMaximum, {a, b}); }

}  // namespace weft
