// Adafactor (Shazeer and Stern, 2018) keeps the mean squared gradients of a matrix as one number for each row and each
// column. It is composed of other ops.
#include <cmath>
#include <limits>

#include "weft/core/status.h"
#include "weft/ops/ops.h"
#include "weft/ops/update/scaled_gradient.h"

namespace weft {
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
  const int rank = weight.shape.rank();
  if (rank < 2) return {weight};
  TensorType row = weight, column = weight;
  row.shape.set_dim(rank - 1, 1);
  column.shape.set_dim(rank - 2, 1);
  return {row, column};
}

}  // namespace weft
