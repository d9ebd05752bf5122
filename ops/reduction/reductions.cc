// Reductions along axes are composed of other ops: sums, means and norms of SumBlocks, extremes of Max along one axis,
// and products of Mul.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/attributes.h"
#include "weft/ops/kernels/rows/axis.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

Shape WithOnes(Shape shape, const AxisSet& reduced) {
  for (int i = 0; i < shape.rank(); ++i) {
    if (reduced[i]) shape.set_dim(i, 1);
  }
  return shape;
}

double Count(const Shape& shape, const AxisSet& reduced) {
  double n = 1;
  for (int i = 0; i < shape.rank(); ++i) n *= reduced[i] ? static_cast<double>(shape.dim(i)) : 1;
  return n;
}

// Moves the reduced axes of x to the end, and merges them into one axis.
Var ReducedLast(Var x, const AxisSet& reduced) {
  const Shape shape = x.shape();
  absl::InlinedVector<int, Shape::kMaxRank> order;
  Shape merged = WithoutAxes(shape, reduced);
  for (bool pass : {false, true}) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (reduced[i] == pass) order.push_back(i);
    }
  }
  merged.Append(static_cast<int64_t>(Count(shape, reduced)));
  return Reshape(std::is_sorted(order.begin(), order.end()) ? x : Permute(x, order), merged);
}

// Reduces x along the axes `reduced` with `reduce`, a function that reduces the last axis and drops it.
Var Over(Var x, const AxisSet& reduced, bool keep, Var (*reduce)(Var)) {
  const Shape shape = x.shape();
  // If no axis is reduced, x is the result. ReducedLast would add an axis of size 1, for which rank 6 leaves no room.
  if (WithoutAxes(shape, reduced).rank() == Shape::kMaxRank && x.dtype() != kBool) return x;
  const Var y = reduce(ReducedLast(x, reduced));
  return keep ? Reshape(y, WithOnes(shape, reduced)) : y;
}

// Returns x summed to `shape`, which broadcasts to x's shape. Sums of bf16 are f32. Neighbouring axes that are all
// summed, or all kept, are merged first.
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

// Checks that `op`, by which `function` reduces, accepts x's dtype. A reduction along no axes, or axes of size 1,
// records no op that would check it.
absl::Status CheckDType(const char* function, const OpDef& op, Var x) {
  if (KernelFor(op, {x.type()}, {x.type()}) != nullptr) return absl::OkStatus();
  return ShapeError(function, absl::StrCat("not defined for ", Name(x.dtype())), {x.type()});
}

// Returns x^exponent for x >= 0, with value and gradient 0 at 0. The power's slope can be infinite there, and 0 ·
// infinity is NaN. Masks before and after the power keep that slope out of gradients.
Var PowFromZero(Var x, double exponent) {
  const Var zero = Equal(x, FillLike(x, 0));
  return MaskFill(Pow(MaskFill(x, zero, 1), exponent), zero, 0);
}

}  // namespace

Var Sum(Var x) { return Sum(Reshape(x, {x.shape().elements()}), 0); }

Var Sum(Var x, int axis, bool keep) {
  return Composite("sum", {x}, [&]() -> absl::StatusOr<Var> {
    const TensorType type = x.type();
    const int from_front = FrontAxis(type.shape, axis);
    WEFT_RETURN_IF_ERROR(CheckAxis("sum", from_front, {type}));
    WEFT_RETURN_IF_ERROR(CheckDType("sum", kSumBlocks, x));
    Var y = x;
    while (y.dim(from_front) != 1) y = SumBlocks(y, from_front);
    y = Cast(y, ComputedIn(type.dtype));
    return keep ? y : Reshape(y, WithoutAxis(type.shape, from_front));
  });
}

Var Sum(Var x, AxisSpan axes, bool keep) {
  return Composite("sum", {x}, [&]() -> absl::StatusOr<Var> {
    const Shape shape = x.shape();
    WEFT_ASSIGN_OR_RETURN(const AxisSet reduced, MarkAxes("sum", axes, x.type()));
    WEFT_RETURN_IF_ERROR(CheckDType("sum", kSumBlocks, x));
    const Var y = SumKept(x, WithOnes(shape, reduced));
    return keep ? y : Reshape(y, WithoutAxes(shape, reduced));
  });
}

Var Mean(Var x) {
  return Composite("mean", {x}, [&] { return Scale(Sum(x), 1 / static_cast<double>(x.shape().elements())); });
}

Var Mean(Var x, int axis, bool keep) {
  return Composite("mean", {x}, [&]() -> absl::StatusOr<Var> {
    const int from_front = FrontAxis(x.shape(), axis);
    WEFT_RETURN_IF_ERROR(CheckAxis("mean", from_front, {x.type()}));
    return Scale(Sum(x, axis, keep), 1 / static_cast<double>(x.dim(axis)));
  });
}

Var Mean(Var x, AxisSpan axes, bool keep) {
  return Composite("mean", {x}, [&]() -> absl::StatusOr<Var> {
    WEFT_ASSIGN_OR_RETURN(const AxisSet reduced, MarkAxes("mean", axes, x.type()));
    return Scale(Sum(x, axes, keep), 1 / Count(x.shape(), reduced));
  });
}

Var Variance(Var x, AxisSpan axes, double correction, bool keep) {
  return Composite("variance", {x}, [&]() -> absl::StatusOr<Var> {
    WEFT_ASSIGN_OR_RETURN(const AxisSet reduced, MarkAxes("variance", axes, x.type()));
    if (!(correction >= 0 && std::isfinite(correction))) {
      return ShapeError("variance", absl::StrCat("correction = ", correction, ", wanted >= 0, finite"), {x.type()});
    }
    const double n = Count(x.shape(), reduced);
    const Var mean = Mean(x, axes, /*keep=*/true);
    return Scale(Sum(Square(Cast(x, mean.dtype()) - mean), axes, keep), 1 / std::max(0.0, n - correction));
  });
}

Var SumTo(Var x, const Shape& shape) {
  return Composite("sum_to", {x}, [&]() -> absl::StatusOr<Var> {
    if (x.shape() == shape) return x;
    if (Broadcast(x.shape(), shape) != x.shape()) {
      return ShapeError("sum_to", absl::StrCat(ToString(shape), " does not broadcast to x"), {x.type()});
    }
    return Cast(SumKept(x, shape), x.dtype());
  });
}

Var Max(Var x, AxisSpan axes, bool keep) {
  return Composite("max", {x}, [&]() -> absl::StatusOr<Var> {
    WEFT_ASSIGN_OR_RETURN(const AxisSet reduced, MarkAxes("max", axes, x.type()));
    if (Count(x.shape(), reduced) == 0 && WithoutAxes(x.shape(), reduced).elements() > 0) {
      return ShapeError("max", "the axes have no elements", {x.type()});
    }
    return Over(x, reduced, keep, [](Var y) { return Max(y, -1); });
  });
}

Var Min(Var x, AxisSpan axes, bool keep) {
  return Composite("min", {x}, [&] { return -Max(-x, axes, keep); });
}

// Multiplies one half of the factors by the other, padded with a 1 if their number is odd, until one factor is left.
Var Prod(Var x, AxisSpan axes, bool keep) {
  return Composite("prod", {x}, [&]() -> absl::StatusOr<Var> {
    WEFT_RETURN_IF_ERROR(CheckDType("prod", kMul, x));
    WEFT_ASSIGN_OR_RETURN(const AxisSet reduced, MarkAxes("prod", axes, x.type()));
    return Over(x, reduced, keep, [](Var y) {
      const Shape shape = y.shape();
      if (shape.dim(-1) == 0) y = Pad(y, -1, 0, 1, 1);
      while (y.dim(-1) > 1) {  // after an error, sizes are 1
        if (y.dim(-1) % 2 == 1) y = Pad(y, -1, 0, 1, 1);
        const VarList halves = Split(y, -1, 2);
        y = halves[0] * halves[1];
      }
      return Reshape(y, WithoutAxis(shape, shape.rank() - 1));
    });
  });
}

Var Norm(Var x, AxisSpan axes, double order, bool keep) {
  return Composite("norm", {x}, [&]() -> absl::StatusOr<Var> {
    if (!(order > 0)) return ShapeError("norm", absl::StrCat("order = ", order, ", wanted > 0"), {x.type()});
    WEFT_ASSIGN_OR_RETURN(const AxisSet reduced, MarkAxes("norm", axes, x.type()));
    if (order == 1 || Count(x.shape(), reduced) == 0) return Sum(Abs(x), axes, keep);
    if (order == 2) return PowFromZero(Sum(Square(x), axes, keep), 0.5);
    if (std::isinf(order)) return Max(Abs(x), axes, keep);
    return PowFromZero(Sum(PowFromZero(Abs(x), order), axes, keep), 1 / order);
  });
}

Var GlobalNorm(VarSpan tensors) {
  WEFT_CHECK(!tensors.empty());
  return Composite("global_norm", tensors, [&] {
    VarList squares;
    for (Var x : tensors) squares.push_back(SquareSum(x));
    return RootOfSum(squares);
  });
}

Var RootOfSum(VarSpan squares) {
  return Composite("root_of_sum", squares, [&] {
    VarList parts;
    for (Var square : squares) parts.push_back(Reshape(square, {1}));
    return PowFromZero(Sum(Concat(parts, 0)), 0.5);
  });
}

// `shift` is the maximum, or 0 where the maximum is infinite, since inf - inf would be NaN. Where all elements are
// -inf, the sum is 0 and the logarithm's slope is infinite. Masks before and after the logarithm keep this slope out of
// gradients.
Var LogSumExp(Var x, AxisSpan axes, bool keep) {
  return Composite("log_sum_exp", {x}, [&]() -> absl::StatusOr<Var> {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    WEFT_ASSIGN_OR_RETURN(const AxisSet reduced, MarkAxes("log_sum_exp", axes, x.type()));
    if (!IsFloat(x.dtype())) {
      return ShapeError("log_sum_exp", absl::StrCat("not defined for ", Name(x.dtype())), {x.type()});
    }
    if (Count(x.shape(), reduced) == 0) {
      const Shape shape = keep ? WithOnes(x.shape(), reduced) : WithoutAxes(x.shape(), reduced);
      return Fill(x.tape, {x.dtype(), shape}, -kInfinity);
    }
    Var shift = Max(x, axes, /*keep=*/true);
    for (double infinity : {kInfinity, -kInfinity}) shift = MaskFill(shift, Equal(shift, FillLike(shift, infinity)), 0);
    const Var sum = Sum(Exp(x - shift), axes, /*keep=*/true), zero = Equal(sum, FillLike(sum, 0));
    const Var y = MaskFill(Log(MaskFill(sum, zero, 1)), zero, -kInfinity) + shift;
    return keep ? y : Reshape(y, WithoutAxes(y.shape(), reduced));
  });
}

Var LogSumExp(Var x, int axis, bool keep) { return LogSumExp(x, AxisSpan(&axis, 1), keep); }

}  // namespace weft
