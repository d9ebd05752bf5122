// ops/composites.cc: what is spelt in other ops.
#include <limits>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/all_ops.h"
#include "weft/ops/blocks.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/ops.h"

namespace weft {

Var Not(Var x) { return Equal(x, FillLike(x, false)); }

Var IsNan(Var x) { return Not(Equal(x, x)); }

Var Sum(Var x) { return Sum(Reshape(x, {x.shape().elements()}), 0); }

Var Sum(Var x, int axis, bool keep) {
  const TensorType type = x.type();
  const int from_front = FrontAxis(type.shape, axis);
  x.tape->Fail(CheckAxis("sum", from_front, {type}));
  // An axis of size 1 needs no sum, and so nobody else to say this.
  if (KernelFor(kSumBlocks, {type}, {type}) == nullptr) {
    x.tape->Fail(ShapeError("sum", absl::StrCat("not defined for ", Name(type.dtype)), {type}));
  }
  if (!x.tape->status().ok()) return x;
  while (x.dim(from_front) != 1) x = SumBlocks(x, from_front);
  x = Cast(x, ComputedIn(type.dtype));
  return keep ? x : Reshape(x, WithoutAxis(type.shape, from_front));
}

Var Mean(Var x) {
  const double n = static_cast<double>(x.shape().elements());
  return Scale(Sum(x), 1 / n);
}

Var Mean(Var x, int axis, bool keep) {
  const double n = static_cast<double>(x.dim(axis));
  return Scale(Sum(x, axis, keep), 1 / n);
}

Var SumTo(Var x, const Shape& shape) {
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
  // Neighbouring axes that are summed become one axis, and so do those that are kept.
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
  return Cast(Reshape(x, shape), dtype);
}

Var GlobalNorm(VarSpan tensors) {
  WEFT_CHECK(!tensors.empty());
  VarList squares;
  for (Var x : tensors) squares.push_back(Reshape(SquareSum(x), {1}));
  // The root of 0 has no slope that 0 · slope would be 0 of: it is masked on both sides.
  const Var sum = Sum(Concat(squares, 0)), zero = Equal(sum, FillLike(sum, 0));
  return MaskFill(Sqrt(MaskFill(sum, zero, 1)), zero, 0);
}

Var Silu(Var x) { return x * Sigmoid(x); }

Var Where(Var mask, Var a, Var b) {
  const std::optional<Shape> values = Broadcast(a.shape(), b.shape());
  const std::optional<Shape> shape = values ? Broadcast(*values, mask.shape()) : std::nullopt;
  if (!shape) {
    a.tape->Fail(ShapeError("where", "the inputs don't broadcast", {mask.type(), a.type(), b.type()}));
    return a;
  }
  return MaskFill(BroadcastTo(a, *shape), Not(mask), 0) + MaskFill(BroadcastTo(b, *shape), mask, 0);
}

// The shift is 0 where the maximum is infinite: inf - inf would be NaN. Where all of a row is -inf, the logarithm of
// the sum 0 has no slope that 0 · slope would be 0 of: it is masked on both sides.
Var LogSumExp(Var x, int axis, bool keep) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Var shift = Max(x, axis, /*keep=*/true);
  for (double infinity : {kInfinity, -kInfinity}) shift = MaskFill(shift, Equal(shift, FillLike(shift, infinity)), 0);
  const Var sum = Sum(Exp(x - shift), axis, /*keep=*/true), zero = Equal(sum, FillLike(sum, 0));
  const Var y = MaskFill(Log(MaskFill(sum, zero, 1)), zero, -kInfinity) + shift;
  return keep ? y : Reshape(y, WithoutAxis(y.shape(), FrontAxis(y.shape(), axis)));
}

Var Gather(Var x, Var ids, int axis) {
  const Shape shape = x.shape(), ids_shape = ids.shape();
  const int front = FrontAxis(shape, axis);
  x.tape->Fail(CheckAxis("gather", front, {x.type(), ids.type()}));
  if (!x.tape->status().ok()) return x;
  // [outer, n, inner] → [n, outer, inner] → rows by id → [outer, ids, inner].
  const int64_t n = shape.dim(front), outer = shape.Product(0, front), inner = shape.Product(front + 1, shape.rank());
  const Var table = Reshape(Transpose(Reshape(x, {outer, n, inner}), 0, 1), {n, outer * inner});
  const Var rows = Reshape(Embedding(table, ids), {ids_shape.elements(), outer, inner});
  Shape result(shape.dims().first(front));
  for (int64_t dim : ids_shape.dims()) result.Append(dim);
  for (int64_t dim : shape.dims().subspan(front + 1)) result.Append(dim);
  return Reshape(Transpose(rows, 0, 1), result);
}

Var OneHot(Var ids, int64_t n, DType dtype) {
  Shape shape = ids.shape();
  shape.Append(1);
  return Cast(Equal(Reshape(ids, shape), Iota(ids.tape, kI32, n)), dtype);
}

Var Rotary(Var x, Var cosine, Var sine, RotaryLayout layout) {
  const Shape shape = x.shape();
  const int64_t half = shape.dim(-1) / 2;
  if (shape.dim(-1) % 2 != 0) {
    x.tape->Fail(ShapeError("rotary", "the last axis must be even", {x.type()}));
    return x;
  }
  const bool pairs = layout == RotaryLayout::kPairs;
  Shape split(shape.dims().first(shape.rank() - 1)), part = split;
  for (int64_t dim : {half, int64_t{2}}) split.Append(dim);
  part.Append(half);
  const VarList parts = pairs ? Split(Reshape(x, split), -1, 2) : Split(x, -1, 2);
  const Var a = Reshape(parts[0], part), b = Reshape(parts[1], part);
  const Var y_a = a * cosine - b * sine, y_b = b * cosine + a * sine;
  if (!pairs) return Concat({y_a, y_b}, -1);
  split.set_dim(-1, 1);
  return Reshape(Concat({Reshape(y_a, split), Reshape(y_b, split)}, -1), shape);
}

}  // namespace weft
