#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/ops/ops.h"
#include "weft/tests/fuzz/drawing.h"

namespace weft {
namespace {

int64_t CountAlong(const Shape& shape, absl::Span<const int> axes) {
  int64_t count = 1;
  for (int axis : axes) count *= shape.dim(axis);
  return count;
}

Drawn Summed(Drawing& draw) {
  const Drawn x = draw.Under(draw.Any(), 100);
  const std::vector<int> axes = draw.Axes(x.shape());
  const bool keep = draw.Chance(2);
  const double count = static_cast<double>(CountAlong(x.shape(), axes));
  switch (draw.Below(5)) {
    case 0:
      return {Sum(x.var, axes, keep), x.bound * count};
    case 1:
      if (count == 0) return {};  // the mean of no elements is NaN
      return {Mean(x.var, axes, keep), x.bound};
    case 2:
      if (count < 2) return {};
      return {Variance(x.var, axes, draw.Chance(2) ? 1 : 0, keep), 2 * x.bound * x.bound};
    case 3:
      return {Prod(Tanh(x.var) * 0.5 + 1.0, axes, keep), count > 8 ? std::pow(1.5, std::min(count, 100.0)) : 30};
    default:
      if (count == 0) return {};
      return {LogSumExp(x.var, axes, keep), x.bound + std::log(count)};
  }
}

// Maxima of values that are far enough apart for the maximum to be unique.
Drawn Extreme(Drawing& draw) {
  const Drawn x = draw.Any();
  const Drawn apart = draw.Apart(x);
  const std::vector<int> axes = draw.Axes(x.shape());
  const bool keep = draw.Chance(2);
  const double count = static_cast<double>(CountAlong(x.shape(), axes));
  if (count == 0) return {};  // no elements have no maximum
  switch (draw.Below(3)) {
    case 0:
      return {Max(apart.var, axes, keep), apart.bound};
    case 1:
      return {Min(apart.var, axes, keep), apart.bound};
    default: {
      static constexpr double kOrders[] = {1, 2, 3, std::numeric_limits<double>::infinity()};
      return {Norm(apart.var, axes, draw.OneOf<double>(kOrders), keep), apart.bound * count};
    }
  }
}

Drawn Greatest(Drawing& draw) {
  const Drawn x = draw.AnyOfRank(1);
  if (x.shape().cols() == 0) return {};
  const Drawn apart = draw.Apart(x);
  if (draw.Chance(3)) return {Cast(ArgMax(apart.var), draw.dtype()) * (1.0 / 130), 1};
  const int64_t k = 1 + draw.Below(x.shape().cols());
  const VarList top = TopK(apart.var, k);
  return {draw.Chance(2) ? top[0] : top[0] * Cast(top[1], draw.dtype()) * (1.0 / 130), apart.bound};
}

Drawn SummedTo(Drawing& draw) {
  const Drawn x = draw.Under(draw.Any(), 10);
  const Shape to = draw.Broadcastable(x.shape());
  if (to.elements() == 0) return {};
  return {SumTo(x.var, to), x.bound * static_cast<double>(x.shape().elements() / to.elements())};
}

Drawn Loss(Drawing& draw) {
  const Drawn x = draw.Under(draw.AnyOfRank(1), 20);
  if (x.shape().elements() == 0) return {};  // the mean of no elements is NaN
  static constexpr Reduction kReductions[] = {Reduction::kMean, Reduction::kSum, Reduction::kNone};
  const Reduction reduction = draw.OneOf<Reduction>(kReductions);
  const double count = static_cast<double>(x.shape().elements());
  switch (draw.Below(4)) {
    case 0: {
      const Drawn target = draw.Leaf(x.shape());
      return {BinaryCrossEntropy(x.var, Sigmoid(target.var), reduction), 41 * count};
    }
    case 1: {
      const Drawn other = draw.Under(draw.Like(x.shape()), 20);
      return {MeanSquaredError(x.var, other.var, reduction), 1600 * count};
    }
    case 2: {
      const Drawn target = draw.Leaf(x.shape());
      const Var log_q = LogSoftmax(x.var), p = Softmax(target.var);
      return {KlDivergence(log_q, p, reduction), 50 * count};
    }
    default: {
      const int64_t classes = x.shape().cols();
      CrossEntropyOptions options = {.reduction = reduction};
      options.ignore_index = -1;
      if (draw.Chance(2)) options.label_smoothing = 0.1;
      if (draw.Chance(3)) options.weights = Softplus(draw.Leaf({classes}).var);
      const Drawn logits = draw.Leaf(x.shape());
      if (draw.Chance(4)) return {CrossEntropy(x.var, Softmax(logits.var), options), 50 * count};
      const Var ids = draw.Ids(Shape(x.shape().dims().first(static_cast<size_t>(x.shape().rank()) - 1)), classes);
      return {CrossEntropy(x.var, ids, options), 50 * count};
    }
  }
}

constexpr Rule kRules[] = {Summed, Summed, Extreme, Greatest, SummedTo, Loss};

}  // namespace

absl::Span<const Rule> ReductionRules() { return kRules; }

}  // namespace weft
