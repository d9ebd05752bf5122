// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024) makes the update of a matrix
// nearly orthogonal. It is composed of other ops: most of its time goes into products of matrices.
#include <algorithm>
#include <cmath>

#include "weft/core/status.h"
#include "weft/ops/ops.h"
#include "weft/ops/update/scaled_gradient.h"

namespace weft {
namespace {

// Returns about U·Vᵀ for x = U·S·Vᵀ, by five steps of Newton and Schulz. The coefficients are the paper's. They raise
// small singular values fast, and leave all of them near 1 rather than at 1.
Var Orthogonalized(Var x) {
  constexpr int kSteps = 5;
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kMinNorm = 1e-7;
  x = x / Maximum(Sqrt(SquareSum(x)), Number(x, kMinNorm));
  const bool tall = x.dim(0) > x.dim(1);
  for (int step = 0; step < kSteps; ++step) {
    // The smaller of the two products of x with itself.
    const Var gram = tall ? MatMul(x, x, {.transpose_a = true}) : MatMul(x, x, {.transpose_b = true});
    const Var polynomial = Scale(gram, kB) + Scale(MatMul(gram, gram), kC);
    x = Scale(x, kA) + (tall ? MatMul(x, polynomial) : MatMul(polynomial, x));
  }
  return x;
}

}  // namespace

VarList MuonUpdate(Var w, Var m, Var grad, Var rate, Var grad_scale, const MuonOptions& options) {
  const VarList in = {w, m, grad, rate, grad_scale};
  return CompositeAll("muon", in, 2, [&]() -> absl::StatusOr<VarList> {
    WEFT_ASSIGN_OR_RETURN(
        const ScaledGradient scaled,
        ScaleGradient("muon", in, 1, {{"momentum", options.momentum, 1}, {"weight_decay", options.weight_decay}}));
    if (w.shape().rank() != 2) return ShapeError("muon", "w must be a matrix", {w.type()});
    const Var gradient = MaskFill(scaled.gradient, scaled.skip, 0);
    const Var next_m = m + Scale(gradient - m, 1 - options.momentum);
    const Var direction = options.nesterov ? gradient + Scale(next_m - gradient, options.momentum) : next_m;
    const double rows = static_cast<double>(w.dim(0)), columns = static_cast<double>(std::max<int64_t>(1, w.dim(1)));
    const Var orthogonal = Scale(Orthogonalized(direction), std::sqrt(std::max(1.0, rows / columns)));
    const Var change = scaled.rate * (orthogonal + Scale(w, options.weight_decay));
    return VarList{Assign(w, w - MaskFill(change, scaled.skip, 0)),
                   Assign(m, m + MaskFill(next_m - m, scaled.skip, 0))};
  });
}

}  // namespace weft
