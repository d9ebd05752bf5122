// ops/elementwise/residual_add.cc: y = x + branch, of equal shapes only: the form that the compiler fuses into
// products.
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/elementwise.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

absl::StatusOr<Types> Infer(const Attrs&, TypeSpan in) {
  if (in[0] != in[1]) return ShapeError("residual_add", "types differ", in);
  return Types{in[0]};
}

// Both gradients are dy.
VarList Gradient(const GradientArgs& a) { return {a.grad(0), a.grad(0)}; }

VarList Elementary(const Attrs&, VarSpan in) { return {Add(in[0], in[1])}; }

constexpr OpExample kExamples[] = {
    {.in = "[] []"},
    {.in = "[3,37] [3,37]", .out = "[3,37]"},
    {.in = "[0,4] [0,4]"},
    {.in = "[2,3] [3]", .error = "types differ"},
};

}  // namespace

constexpr OpDef kResidualAdd = {.name = "residual_add",
                                .infer = Infer,
                                .kernels = kBinaryKernels<BinaryFunction::kAdd>,
                                .cut = Cut::kBoth,
                                .in_place = 0,
                                .gradient = Gradient,
                                .elementary = Elementary,
                                .autocast = Autocast::kFollow,
                                .examples = kExamples};
Var ResidualAdd(Var x, Var y) { return Record(kResidualAdd, {x, y}); }

}  // namespace weft
