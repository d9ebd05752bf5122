// ops/composites.cc: reductions that are spelt in other ops.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/blocks.h"
#include "weft/ops/ops.h"

namespace weft {

Var Sum(Var x) { return Sum(Reshape(x, {x.shape().elements()}), 0); }

Var Sum(Var x, int axis, bool keep) {
  const std::optional<int> from_front = NormalAxis(x.shape(), axis);
  if (!from_front) {
    const TensorType type = x.type();
    x.tape->Fail(ShapeError("sum", absl::StrCat("axis ", axis, " is outside rank ", type.shape.rank()), {type}));
    return x;
  }
  Shape shape;
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (i != *from_front) shape.Append(x.dim(i));
  }
  while (x.dim(*from_front) != 1) x = SumBlocks(x, *from_front);
  return keep ? x : Reshape(x, shape);
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
  return Sqrt(Sum(Concat(squares, 0)));
}

}  // namespace weft
