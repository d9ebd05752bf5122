// ops/shape/shapes.cc: squeezing, stacking and triangles, spelt in other ops.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/ops.h"

namespace weft {

Var Squeeze(Var x, AxisSpan axes) {
  const TensorType type = x.type();
  const absl::StatusOr<AxisSet> dropped = MarkAxes("squeeze", axes, type);
  x.tape->Fail(dropped.status());
  if (!x.tape->status().ok()) return x;
  for (int axis : axes) {
    if (type.shape.dim(axis) == 1) continue;
    x.tape->Fail(ShapeError("squeeze", absl::StrCat("axis ", axis, " has size ", type.shape.dim(axis)), {type}));
  }
  return Reshape(x, WithoutAxes(type.shape, *dropped));
}

Var Unsqueeze(Var x, int axis) {
  const FunctionScope calling("unsqueeze", {x});
  const TensorType type = x.type();
  const int rank = type.shape.rank(), front = axis < 0 ? axis + rank + 1 : axis;
  if (front < 0 || front > rank) {
    x.tape->Fail(ShapeError("unsqueeze", absl::StrCat("axis ", axis, " is outside rank ", rank + 1), {type}));
    return x;
  }
  Shape shape(type.shape.dims().first(front));
  shape.Append(1);
  for (int64_t dim : type.shape.dims().subspan(front)) shape.Append(dim);
  return Reshape(x, shape);
}

Var Stack(VarSpan parts, int axis) {
  const FunctionScope calling("stack", parts);
  VarList unsqueezed;
  for (Var part : parts) unsqueezed.push_back(calling.ok() ? Unsqueeze(part, axis) : part);
  return Concat(unsqueezed, axis);
}

namespace {

// Whether column - row of [..., T, S] is below `diagonal`: [T, S].
Var BelowDiagonal(const char* op, Var x, int64_t diagonal) {
  if (x.shape().rank() < 2) {
    x.tape->Fail(ShapeError(op, "x needs rank >= 2", {x.type()}));
    return x;
  }
  const Var rows = Reshape(Iota(x.tape, kI32, x.dim(-2)), {x.dim(-2), 1}), columns = Iota(x.tape, kI32, x.dim(-1));
  diagonal = std::clamp(diagonal, -x.dim(-2), x.dim(-1));
  return Less(columns - rows, Number(rows, static_cast<double>(diagonal)));
}

}  // namespace

Var Triu(Var x, int64_t diagonal) {
  const Var below = BelowDiagonal("triu", x, diagonal);
  return x.tape->status().ok() ? MaskFill(x, below, 0) : x;
}

Var Tril(Var x, int64_t diagonal) {
  const Var kept = BelowDiagonal("tril", x, std::min(diagonal, x.dim(-1)) + 1);
  return x.tape->status().ok() ? MaskFill(x, Not(kept), 0) : x;
}

}  // namespace weft
