// ops/reduction/reductions.cc: sums, means, extremes, products and norms along axes, spelt in sums of blocks and
// maxima.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/ops.h"
#include "weft/ops/reduction/blocks.h"

namespace weft {
namespace {

// Which axes of x are meant; fails on the tape where that is not to be told.
AxisSet AxesOf(const char* op, Var x, AxisSpan axes) {
  const absl::StatusOr<AxisSet> marked = MarkAxes(op, axes, x.type());
  x.tape->Fail(marked.status());
  return marked.value_or(AxisSet{});
}

Shape WithOnes(Shape shape, const AxisSet& reduced) {
  for (int i = 0; i < shape.rank(); ++i) {
    if (reduced[i]) shape.set_dim(i, 1);
  }
  return shape;
}

// x with the reduced axes as its last one.
Var ReducedLast(Var x, const AxisSet& reduced) {
  const Shape shape = x.shape();
  absl::InlinedVector<int, Shape::kMaxRank> order;
  Shape merged = WithoutAxes(shape, reduced);
  int64_t n = 1;
  for (bool pass : {false, true}) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (reduced[i] == pass) order.push_back(i);
    }
  }
  for (int i = 0; i < shape.rank(); ++i) n *= reduced[i] ? shape.dim(i) : 1;
  merged.Append(n);
  return Reshape(std::is_sorted(order.begin(), order.end()) ? x : Permute(x, order), merged);
}

// `reduce` drops the last axis.
Var Over(const char* op, Var x, AxisSpan axes, bool keep, Var (*reduce)(Var)) {
  const AxisSet reduced = AxesOf(op, x, axes);
  if (!x.tape->status().ok()) return x;
  const Shape shape = x.shape();
  if (axes.empty() && shape.rank() == Shape::kMaxRank && x.dtype() != kBool)
    return x;  // there is no axis left for one element
  const Var y = reduce(ReducedLast(x, reduced));
  return y.tape->status().ok() && keep ? Reshape(y, WithOnes(shape, reduced)) : y;
}

// x summed to `shape`, which broadcasts to x's, in what its dtype is computed in. Neighbouring axes that are summed
// become one axis, and so do those that are kept.
Var SumKept(Var x, const Shape& shape) {
  const Shape from = x.shape();
  Shape merged;
  absl::InlinedVector<bool, Shape::kMaxRank> summed;
  for (int i = 0; i < from.rank(); ++i) {
    if (from.dim(i) == 1) continue;
    const bool sum = shape.dim(i - from.rank()) == 1;
    if (summed.empty() || summed.back() != sum) {
      merged.Append(from.dim(i));
      summed.push_back(sum);
    } else {
      merged.set_dim(-1, merged.dim(-1) * from.dim(i));
    }
  }
  x = Reshape(x, merged);
  for (int i = 0; i < static_cast<int>(summed.size()); ++i) {
    if (summed[i]) x = Sum(x, i, /*keep=*/true);
  }
  return Reshape(Cast(x, ComputedIn(x.dtype())), shape);
}

// A sum along nothing, or along axes of size 1, needs no op, and so has nobody else to say this.
void CheckSummed(Var x) {
  if (KernelFor(kSumBlocks, {x.type()}, {x.type()}) != nullptr) return;
  x.tape->Fail(ShapeError("sum", absl::StrCat("not defined for ", Name(x.dtype())), {x.type()}));
}

double Count(const Shape& shape, const AxisSet& reduced) {
  double n = 1;
  for (int i = 0; i < shape.rank(); ++i) n *= reduced[i] ? static_cast<double>(shape.dim(i)) : 1;
  return n;
}

}  // namespace

Var Sum(Var x) { return Sum(Reshape(x, {x.shape().elements()}), 0); }

Var Sum(Var x, int axis, bool keep) {
  const TensorType type = x.type();
  const int from_front = FrontAxis(type.shape, axis);
  x.tape->Fail(CheckAxis("sum", from_front, {type}));
  CheckSummed(x);
  if (!x.tape->status().ok()) return x;
  while (x.dim(from_front) != 1) x = SumBlocks(x, from_front);
  x = Cast(x, ComputedIn(type.dtype));
  return keep ? x : Reshape(x, WithoutAxis(type.shape, from_front));
}

Var Sum(Var x, AxisSpan axes, bool keep) {
  const AxisSet reduced = AxesOf("sum", x, axes);
  CheckSummed(x);
  if (!x.tape->status().ok()) return x;
  const Shape shape = x.shape();
  const Var y = SumKept(x, WithOnes(shape, reduced));
  return keep ? y : Reshape(y, WithoutAxes(shape, reduced));
}

Var Mean(Var x) {
  const FunctionScope calling("mean", {x});
  const double n = static_cast<double>(x.shape().elements());
  return Scale(Sum(x), 1 / n);
}

Var Mean(Var x, int axis, bool keep) {
  const FunctionScope calling("mean", {x});
  const double n = static_cast<double>(x.dim(axis));
  return Scale(Sum(x, axis, keep), 1 / n);
}

Var Mean(Var x, AxisSpan axes, bool keep) {
  const FunctionScope calling("mean", {x});
  const AxisSet reduced = AxesOf("mean", x, axes);
  return Scale(Sum(x, axes, keep), 1 / Count(x.shape(), reduced));
}

Var Variance(Var x, AxisSpan axes, double correction, bool keep) {
  const FunctionScope calling("variance", {x});
  const AxisSet reduced = AxesOf("variance", x, axes);
  if (!(correction >= 0 && std::isfinite(correction))) {
    x.tape->Fail(
        ShapeError("variance", absl::StrCat("correction = ", correction, ", wanted >= 0, finite"), {x.type()}));
  }
  const double n = Count(x.shape(), reduced);
  const Var mean = Mean(x, axes, /*keep=*/true);
  return Scale(Sum(Square(Cast(x, mean.dtype()) - mean), axes, keep), 1 / std::max(0.0, n - correction));
}

Var SumTo(Var x, const Shape& shape) {
  const FunctionScope calling("sum_to", {x});
  const Shape from = x.shape();
  const DType dtype = x.dtype();
  if (from == shape || !x.tape->status().ok()) return x;
  const std::optional<Shape> broadcast = Broadcast(from, shape);
  if (!broadcast || *broadcast != from) {
    const absl::Status error =
        ShapeError("sum_to", absl::StrCat(ToString(shape), " does not broadcast to x"), {x.type()});
    x.tape->Fail(error);
    return x;
  }
  return Cast(SumKept(x, shape), dtype);
}

Var Max(Var x, AxisSpan axes, bool keep) {
  const FunctionScope calling("max", {x});
  const AxisSet reduced = AxesOf("max", x, axes);
  if (calling.ok() && Count(x.shape(), reduced) == 0 && WithoutAxes(x.shape(), reduced).elements() > 0) {
    x.tape->Fail(ShapeError("max", "nothing along the axes", {x.type()}));
  }
  return Over("max", x, axes, keep, [](Var y) { return Max(y, -1); });
}

Var Min(Var x, AxisSpan axes, bool keep) {
  const FunctionScope calling("min", {x});
  return -Max(-x, axes, keep);
}

// Half of the factors times the other half, until one is left.
Var Prod(Var x, AxisSpan axes, bool keep) {
  const FunctionScope calling("prod", {x});
  if (KernelFor(kMul, {x.type(), x.type()}, {x.type()}) == nullptr) {
    x.tape->Fail(ShapeError("prod", absl::StrCat("not defined for ", Name(x.dtype())), {x.type()}));
  }
  return Over("prod", x, axes, keep, [](Var y) {
    const Shape shape = y.shape();
    if (shape.dim(-1) == 0) y = Pad(y, -1, 0, 1, 1);
    while (y.tape->status().ok() && y.dim(-1) > 1) {
      if (y.dim(-1) % 2 == 1) y = Pad(y, -1, 0, 1, 1);
      const VarList halves = Split(y, -1, 2);
      y = halves[0] * halves[1];
    }
    return Reshape(y, WithoutAxis(shape, shape.rank() - 1));
  });
}

namespace {

// Powers of x >= 0 that are 0 at 0, where they have no slope that 0 · slope would be 0 of: masked on both sides.
Var PowFromZero(Var x, double exponent) {
  const Var zero = Equal(x, FillLike(x, 0));
  return MaskFill(Pow(MaskFill(x, zero, 1), exponent), zero, 0);
}

}  // namespace

Var Norm(Var x, AxisSpan axes, double order, bool keep) {
  const FunctionScope calling("norm", {x});
  if (!(order > 0)) x.tape->Fail(ShapeError("norm", absl::StrCat("order = ", order, ", wanted > 0"), {x.type()}));
  const AxisSet reduced = AxesOf("norm", x, axes);
  if (!calling.ok()) return x;
  if (order == 1 || Count(x.shape(), reduced) == 0) return Sum(Abs(x), axes, keep);
  if (order == 2) return PowFromZero(Sum(Square(x), axes, keep), 0.5);
  if (std::isinf(order)) return Max(Abs(x), axes, keep);
  return PowFromZero(Sum(PowFromZero(Abs(x), order), axes, keep), 1 / order);
}

Var GlobalNorm(VarSpan tensors) {
  WEFT_CHECK(!tensors.empty());
  const FunctionScope calling("global_norm", tensors);
  if (!calling.ok()) return tensors[0];
  VarList squares;
  for (Var x : tensors) squares.push_back(Reshape(SquareSum(x), {1}));
  return PowFromZero(Sum(Concat(squares, 0)), 0.5);
}

// The shift is 0 where the maximum is infinite: inf - inf would be NaN. Where all of a row is -inf, the logarithm of
// the sum 0 has no slope that 0 · slope would be 0 of: it is masked on both sides.
Var LogSumExp(Var x, AxisSpan axes, bool keep) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const FunctionScope calling("log_sum_exp", {x});
  const AxisSet reduced = AxesOf("log_sum_exp", x, axes);
  if (!IsFloat(x.dtype())) {
    x.tape->Fail(ShapeError("log_sum_exp", absl::StrCat("not defined for ", Name(x.dtype())), {x.type()}));
  }
  if (!x.tape->status().ok()) return x;
  if (Count(x.shape(), reduced) == 0) {
    const Shape shape = keep ? WithOnes(x.shape(), reduced) : WithoutAxes(x.shape(), reduced);
    return Fill(x.tape, {x.dtype(), shape}, -kInfinity);
  }
  Var shift = Max(x, axes, /*keep=*/true);
  for (double infinity : {kInfinity, -kInfinity}) shift = MaskFill(shift, Equal(shift, FillLike(shift, infinity)), 0);
  const Var sum = Sum(Exp(x - shift), axes, /*keep=*/true), zero = Equal(sum, FillLike(sum, 0));
  const Var y = MaskFill(Log(MaskFill(sum, zero, 1)), zero, -kInfinity) + shift;
  return keep ? y : Reshape(y, WithoutAxes(y.shape(), reduced));
}

Var LogSumExp(Var x, int axis, bool keep) { return LogSumExp(x, AxisSpan(&axis, 1), keep); }

}  // namespace weft
