// Squeezing, stacking and triangles are composed of other ops.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"
#include "weft/ops/kernels/axis.h"
#include "weft/ops/ops.h"

namespace weft {

Var Squeeze(Var x, AxisSpan axes) {
  return Composite("squeeze", {x}, [&]() -> absl::StatusOr<Var> {
    const TensorType type = x.type();
    WEFT_ASSIGN_OR_RETURN(const AxisSet dropped, MarkAxes("squeeze", axes, type));
    for (int axis : axes) {
      const int64_t size = type.shape.dim(axis);
      if (size != 1) return ShapeError("squeeze", absl::StrCat("axis ", axis, " has size ", size), {type});
    }
    return Reshape(x, WithoutAxes(type.shape, dropped));
  });
}

Var Unsqueeze(Var x, int axis) {
  return Composite("unsqueeze", {x}, [&]() -> absl::StatusOr<Var> {
    const TensorType type = x.type();
    const int rank = type.shape.rank(), front = axis < 0 ? axis + rank + 1 : axis;
    if (front < 0 || front > rank) {
      return ShapeError("unsqueeze", absl::StrCat("axis ", axis, " is outside rank ", rank + 1), {type});
    }
    Shape shape(type.shape.dims().first(front));
    shape.Append(1);
    for (int64_t dim : type.shape.dims().subspan(front)) shape.Append(dim);
    return Reshape(x, shape);
  });
}

Var Stack(VarSpan parts, int axis) {
  return Composite("stack", parts, [&] {
    VarList unsqueezed;
    for (Var part : parts) unsqueezed.push_back(Unsqueeze(part, axis));
    return Concat(unsqueezed, axis);
  });
}

namespace {

// Returns [T, S], which tells for x [..., T, S] whether column - row is below `diagonal`.
absl::StatusOr<Var> BelowDiagonal(const char* op, Var x, int64_t diagonal) {
  if (x.shape().rank() < 2) return ShapeError(op, "x needs rank >= 2", {x.type()});
  const Var rows = Reshape(Iota(x.tape, kI32, x.dim(-2)), {x.dim(-2), 1}), columns = Iota(x.tape, kI32, x.dim(-1));
  diagonal = std::clamp(diagonal, -x.dim(-2), x.dim(-1));
  return Less(columns - rows, Number(rows, static_cast<double>(diagonal)));
}

}  // namespace

Var Triu(Var x, int64_t diagonal) {
  return Composite("triu", {x}, [&]() -> absl::StatusOr<Var> {
    WEFT_ASSIGN_OR_RETURN(const Var below, BelowDiagonal("triu", x, diagonal));
    return MaskFill(x, below, 0);
  });
}

Var Tril(Var x, int64_t diagonal) {
  return Composite("tril", {x}, [&]() -> absl::StatusOr<Var> {
    WEFT_ASSIGN_OR_RETURN(const Var kept, BelowDiagonal("tril", x, std::min(diagonal, x.dim(-1)) + 1));
    return MaskFill(x, Not(kept), 0);
  });
}

}  // namespace weft
