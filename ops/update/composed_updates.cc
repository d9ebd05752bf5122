// Defines the updates of a weight that are composed of other ops, and the factor that clips gradients. ops.h has the
// formulas. The compiler fuses the ops, so that an update is one pass over memory, except for what Muon multiplies and
// Adafactor reduces.
//
// Inputs are those of updates.cc. Each update begins with ScaleGradient.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/attributes.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

struct ScaledGradient {
  Var gradient, rate;  // grad · grad_scale, and the rate, in w's dtype
  Var skip;            // bool []: true if grad_scale is not finite
};

// An option and its value, which must be at least 0 and below `limit`.
struct NamedOption {
  const char* name;
  double value, limit = std::numeric_limits<double>::infinity();
};

// Checks the inputs and options of an update. `in` begins with w, `states` states of w, grad, rate and grad_scale.
absl::StatusOr<ScaledGradient> ScaleGradient(const char* op, VarSpan in, size_t states,
                                             std::initializer_list<NamedOption> options) {
  Types types;
  for (Var v : in) types.push_back(v.type());
  WEFT_RETURN_IF_ERROR(CheckUpdateTypes(op, types, states));
  const Var w = in[0], grad = in[states + 1], rate = in[states + 2], grad_scale = in[states + 3];
  for (const auto& [name, value, limit] : options) {
    if (value >= 0 && value < limit) continue;
    const std::string wanted = std::isfinite(limit) ? absl::StrCat("in [0, ", limit, ")") : ">= 0, finite";
    return ShapeError(op, absl::StrCat(name, " = ", value, ", wanted ", wanted), types);
  }
  return ScaledGradient{.gradient = grad * Cast(grad_scale, w.dtype()),
                        .rate = Cast(rate, w.dtype()),
                        .skip = IsNan(grad_scale - grad_scale)};
}

}  // namespace

// Adds norm - norm, which is NaN if the norm is not finite, and otherwise 0. A limit is computed in f64, and rounded
// once.
Var ClipScale(Var norm, double max_norm) {
  return Composite("clip_scale", {norm}, [&]() -> absl::StatusOr<Var> {
    const auto error = [&](const auto&... parts) {
      return ShapeError("clip_scale", absl::StrCat(parts...), {norm.type()});
    };
    if (norm.dtype() != kF32 && norm.dtype() != kF64) return error("not defined for ", Name(norm.dtype()));
    if (norm.shape().rank() != 0) return error("the norm must be a scalar");
    if (!(max_norm >= 0)) return error("max_norm = ", max_norm, ", wanted >= 0");
    if (max_norm == 0) return Cast(1 + (norm - norm), kF32);
    const Var exact = Cast(norm, kF64);
    return Cast(Minimum(max_norm / (exact + 1e-6), Number(exact, 1)) + (exact - exact), kF32);
  });
}

VarList AdagradUpdate(Var w, Var sum, Var grad, Var rate, Var grad_scale, Var step, const AdagradOptions& options) {
  const VarList in = {w, sum, grad, rate, grad_scale, step};
  return CompositeAll("adagrad", in, 2, [&]() -> absl::StatusOr<VarList> {
    WEFT_ASSIGN_OR_RETURN(const ScaledGradient scaled, ScaleGradient("adagrad", in, 1,
                                                                     {{"epsilon", options.epsilon},
                                                                      {"weight_decay", options.weight_decay},
                                                                      {"rate_decay", options.rate_decay}}));
    const Var g = scaled.gradient + Scale(w, options.weight_decay);
    const Var next_sum = sum + MaskFill(Square(g), scaled.skip, 0);
    const Var done = Cast(step - 1, w.dtype());
    const Var change = scaled.rate / (1 + Scale(done, options.rate_decay)) * g / (Sqrt(next_sum) + options.epsilon);
    return VarList{Assign(w, w - MaskFill(change, scaled.skip, 0)), Assign(sum, next_sum)};
  });
}

VarList LionUpdate(Var w, Var m, Var grad, Var rate, Var grad_scale, const LionOptions& options) {
  const VarList in = {w, m, grad, rate, grad_scale};
  return CompositeAll("lion", in, 2, [&]() -> absl::StatusOr<VarList> {
    WEFT_ASSIGN_OR_RETURN(const ScaledGradient scaled, ScaleGradient("lion", in, 1,
                                                                     {{"beta1", options.beta1, 1},
                                                                      {"beta2", options.beta2, 1},
                                                                      {"weight_decay", options.weight_decay}}));
    const Var gradient = scaled.gradient;
    const Var ahead = m + Scale(gradient - m, 1 - options.beta1);
    const Var next_m = m + MaskFill(Scale(gradient - m, 1 - options.beta2), scaled.skip, 0);
    const Var change = scaled.rate * (Sign(ahead) + Scale(w, options.weight_decay));
    return VarList{Assign(w, w - MaskFill(change, scaled.skip, 0)), Assign(m, next_m)};
  });
}

// Adam is AdamW without decay, applied to the gradient grad · grad_scale + decay · w.
VarList AdamUpdate(Var w, Var m, Var v, Var grad, Var rate, Var grad_scale, Var step, const AdamWOptions& options) {
  const VarList in = {w, m, v, grad, rate, grad_scale, step};
  return CompositeAll("adam", in, 3, [&]() -> absl::StatusOr<VarList> {
    WEFT_ASSIGN_OR_RETURN(const ScaledGradient scaled,
                          ScaleGradient("adam", in, 2, {{"weight_decay", options.weight_decay}}));
    AdamWOptions plain = options;
    plain.weight_decay = 0;
    const Var one = MaskFill(FillLike(grad_scale, 1), scaled.skip, std::numeric_limits<double>::quiet_NaN());
    return AdamWUpdate(w, m, v, scaled.gradient + Scale(w, options.weight_decay), rate, one, step, plain);
  });
}

// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024) makes the update of a matrix
// nearly orthogonal. Most of its time goes into products of matrices.
namespace {

// Returns about U·Vᵀ for x = U·S·Vᵀ, by five steps of Newton and Schulz. The coefficients are the paper's. They raise
// small singular values fast, and leave all of them near 1 rather than at 1. The steps compute in `dtype`.
Var Orthogonalized(Var x, DType dtype) {
  constexpr int kSteps = 5;
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kMinNorm = 1e-7;
  const DType given = x.dtype();
  x = Cast(x / Maximum(Sqrt(SquareSum(x)), Number(x, kMinNorm)), dtype);
  const bool tall = x.dim(0) > x.dim(1);
  for (int step = 0; step < kSteps; ++step) {
    // The smaller of the two products of x with itself.
    const Var gram = tall ? MatMul(x, x, {.transpose_a = true}) : MatMul(x, x, {.transpose_b = true});
    const Var polynomial = Scale(gram, kB) + Scale(MatMul(gram, gram), kC);
    x = Scale(x, kA) + (tall ? MatMul(x, polynomial) : MatMul(polynomial, x));
  }
  return Cast(x, given);
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
    const DType dtype = options.bf16 ? kBF16 : w.dtype();
    const Var orthogonal = Scale(Orthogonalized(direction, dtype), std::sqrt(std::max(1.0, rows / columns)));
    const Var change = scaled.rate * (orthogonal + Scale(w, options.weight_decay));
    return VarList{Assign(w, w - MaskFill(change, scaled.skip, 0)),
                   Assign(m, m + MaskFill(next_m - m, scaled.skip, 0))};
  });
}

// Adafactor (Shazeer and Stern, 2018) keeps the mean squared gradients of a matrix as one number for each row and each
// column.
namespace {

constexpr double kMinScale = 1e-3;   // minimum root mean square of w for the size of a step: the paper's ε₂
constexpr double kMaxUpdateRms = 1;  // maximum root mean square of an update before the rate: the paper's d

Var RootMeanSquare(Var x) {
  return Sqrt(Scale(SquareSum(x), 1 / std::max(1.0, static_cast<double>(x.shape().elements()))));
}

}  // namespace

VarList AdafactorUpdate(Var w, VarSpan squares, Var grad, Var rate, Var grad_scale, Var step,
                        const AdafactorOptions& options) {
  VarList in = {w, grad, rate, grad_scale, step};
  in.insert(in.end(), squares.begin(), squares.end());
  return CompositeAll("adafactor", in, 1 + squares.size(), [&]() -> absl::StatusOr<VarList> {
    WEFT_ASSIGN_OR_RETURN(const ScaledGradient scaled, ScaleGradient("adafactor", VarSpan(in).first(5), 0,
                                                                     {{"beta2_decay", options.beta2_decay},
                                                                      {"weight_decay", options.weight_decay}}));
    const std::vector<TensorType> wanted = AdafactorStates(w.type());
    Types types = {w.type()};
    for (Var v : squares) types.push_back(v.type());
    bool fit = squares.size() == wanted.size();
    for (size_t i = 0; fit && i < wanted.size(); ++i) fit = squares[i].type() == wanted[i];
    if (!fit) return ShapeError("adafactor", "the squares must have the types of AdafactorStates", types);

    const double epsilon =
        w.dtype() == kF64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
    const Var done = Cast(step, w.dtype()), gradient = MaskFill(scaled.gradient, scaled.skip, 0);
    const Var weight_of_new = Pow(done, -options.beta2_decay), square = Square(gradient);
    const auto next = [&](Var mean, Var now) { return mean + (now - mean) * weight_of_new; };
    VarList next_squares;
    Var variance;
    if (wanted.size() == 1) {
      next_squares = {next(squares[0], square)};
      variance = next_squares[0];
    } else {
      const Var row = next(squares[0], Mean(square, -1, true)), column = next(squares[1], Mean(square, -2, true));
      next_squares = {row, column};
      variance = row * column / Maximum(Mean(row, -2, true), Number(w, epsilon));
    }
    const Var update = gradient * Rsqrt(Maximum(variance, Number(w, epsilon * epsilon)));
    const Var size = Maximum(RootMeanSquare(w), Number(w, kMinScale)) * Minimum(scaled.rate, Rsqrt(done));
    const Var clipped = size / Maximum(Scale(RootMeanSquare(update), 1 / kMaxUpdateRms), Number(w, 1));
    const Var change = update * clipped + w * Scale(scaled.rate, options.weight_decay);
    VarList results = {Assign(w, w - MaskFill(change, scaled.skip, 0))};
    for (size_t i = 0; i < squares.size(); ++i) {
      results.push_back(Assign(squares[i], squares[i] + MaskFill(next_squares[i] - squares[i], scaled.skip, 0)));
    }
    return results;
  });
}

std::vector<TensorType> AdafactorStates(const TensorType& weight) {
  if (weight.shape.rank() < 2) return {weight};
  return {{weight.dtype, WithDim(weight.shape, -1, 1)}, {weight.dtype, WithDim(weight.shape, -2, 1)}};
}

}  // namespace weft
