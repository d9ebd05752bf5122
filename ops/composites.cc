// ops/composites.cc: what is spelt in other ops.
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
  return Reshape(x, shape);
}

Var GlobalNorm(VarSpan tensors) {
  WEFT_CHECK(!tensors.empty());
  VarList squares;
  for (Var x : tensors) squares.push_back(Reshape(SquareSum(x), {1}));
  // The root of 0 has no slope that 0 · slope would be 0 of: it is masked on both sides.
  const Var sum = Sum(Concat(squares, 0)), zero = Equal(sum, FillLike(sum, 0));
  return MaskFill(Sqrt(MaskFill(sum, zero, 1)), zero, 0);
}

}  // namespace weft
